/** The whole window in one strip, with the part on the screen as a frame that can be dragged. */

import { useEffect, useRef } from "preact/hooks";
import { seconds } from "../format";
import type { Ps, Span, TimelineAnswer } from "../types";
import { paintLane } from "./paint";
import { Scale, clamped, whole } from "./view";
import { paintCanvas } from "../ui/canvas";

const HEIGHT = 28;

interface Props {
  answer: TimelineAnswer | null;
  windowPs: Ps;
  view: Span;
  width: number;
  setView: (view: Span) => void;
}

export function Minimap({ answer, windowPs, view, width, setView }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    if (!canvas.current || !answer || width === 0) return;
    paintCanvas(canvas.current, width, HEIGHT, (context) => {
      context.clearRect(0, 0, width, HEIGHT);
      const lane = answer.lanes.find(({ id }) => id === "ledger");
      if (!lane) return;
      const box = { top: 0, height: HEIGHT, rows: 1, rowHeight: HEIGHT, title: lane.title };
      const scale = new Scale(whole(windowPs), width);
      paintLane(context, { kind: "lane", id: lane.id, lane, ...box }, scale, answer.names, null);
    });
  }, [answer, width, windowPs]);

  const scale = new Scale(whole(windowPs), Math.max(width, 1));
  const [left, right] = [scale.x(view.start_ps), scale.x(view.end_ps)];

  const centreOn = (event: PointerEvent) => {
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
        centreOn(event);
      }}
      onPointerMove={centreOn}
    >
      <canvas ref={canvas} aria-hidden="true" />
      <div class="minimap-shade" style={{ left: 0, width: `${left}px` }} />
      <div class="minimap-shade" style={{ left: `${right}px`, right: 0 }} />
      <div
        class="minimap-frame"
        style={{ left: `${left}px`, width: `${Math.max(right - left, 4)}px` }}
      />
    </div>
  );
}
