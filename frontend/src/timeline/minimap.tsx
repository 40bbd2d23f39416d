/** The whole window as a track, with the part on the screen as a frame that can be dragged. */

import { seconds } from "../format";
import { BUCKET_COLORS } from "../palette";
import type { Finding, Ps, Span } from "../types";
import { Scale, clamped, whole } from "./view";

const MARKS_MOST = 200;

interface Props {
  findings: readonly Finding[];
  windowPs: Ps;
  view: Span;
  width: number;
  setView: (view: Span) => void;
}

export function Minimap({ findings, windowPs, view, width, setView }: Props) {
  const scale = new Scale(whole(windowPs), Math.max(width, 1));
  const [left, right] = [scale.x(view.start_ps), scale.x(view.end_ps)];

  const centerOn = (event: PointerEvent) => {
    if (!(event.buttons & 1)) return;
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const middle = scale.ps(event.clientX - box.left);
    const half = (view.end_ps - view.start_ps) / 2;
    setView(clamped({ start_ps: middle - half, end_ps: middle + half }, windowPs));
  };

  return (
    <div
      class="minimap"
      title={`The whole window, ${seconds(windowPs)}. Drag to move.`}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        centerOn(event);
      }}
      onPointerMove={centerOn}
    >
      {marksOf(findings).map(({ bucket, start_ps, end_ps }, index) => (
        <i
          key={index}
          class="minimap-mark"
          style={{
            left: `${scale.x(start_ps)}px`,
            width: `${Math.max(scale.x(end_ps) - scale.x(start_ps), 2)}px`,
            background: BUCKET_COLORS[bucket],
          }}
        />
      ))}
      <div
        class="minimap-frame"
        style={{ left: `${left}px`, width: `${Math.max(right - left, 6)}px` }}
      />
    </div>
  );
}

/** Where the findings have their evidence. */
function marksOf(findings: readonly Finding[]) {
  const marks = findings.flatMap(({ bucket, evidence }) =>
    evidence.map(({ start_ps, end_ps }) => ({ bucket, start_ps, end_ps })),
  );
  return marks.slice(0, MARKS_MOST);
}
