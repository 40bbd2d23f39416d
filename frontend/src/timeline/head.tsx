/** What stays above the lanes while they are scrolled: the track, the ruler, the findings' flags. */

import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { type Focus, focusOnFinding } from "../focus";
import type { Ps, Report, Span } from "../types";
import { paintCanvas } from "../ui/canvas";
import { ANNOTATION_ROW_HEIGHT, placeFlags, rowsNeeded } from "./annotations";
import { Flags } from "./flags";
import { RULER_HEIGHT } from "./layout";
import { Minimap } from "./minimap";
import { type Theme, paintRuler } from "./paint";
import { Scale } from "./view";

const FLAGS_GAP = 6;

interface Props {
  report: Report;
  windowPs: Ps;
  view: Span;
  width: number;
  theme: Theme;
  originPs: Ps;
  setView: (view: Span) => void;
  focus: Focus | null;
  setFocus: (focus: Focus | null) => void;
}

export function Head(props: Props) {
  const { report, windowPs, view, width, theme, originPs, focus, setFocus } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const scale = new Scale(view, Math.max(width, 1));
  const rows = useMemo(
    () => rowsNeeded(report.findings, windowPs, Math.max(width, 1)),
    [report, windowPs, width],
  );
  useLayoutEffect(() => {
    if (!canvas.current || width === 0) return;
    paintCanvas(canvas.current, width, RULER_HEIGHT, (context) =>
      paintRuler(context, { scale, theme, originPs }),
    );
  });
  const flagsHeight = rows > 0 ? rows * ANNOTATION_ROW_HEIGHT + FLAGS_GAP : 0;
  return (
    <div class="timeline-grid timeline-head">
      <div class="timeline-titles" style={{ height: `${RULER_HEIGHT}px` }} />
      <canvas ref={canvas} aria-hidden="true" />
      <div class="timeline-titles overview-cell">
        <span class="head-title overview-title">overview</span>
      </div>
      <Minimap findings={report.findings} {...{ windowPs, view, width, setView: props.setView }} />
      {rows > 0 && (
        <>
          <div class="timeline-titles">
            <span class="head-title">findings</span>
          </div>
          <div class="timeline-flags" style={{ height: `${flagsHeight}px` }}>
            <Flags
              flags={placeFlags(report.findings, scale, rows)}
              rows={rows}
              width={width}
              chosen={focus?.findingId ?? null}
              onChoose={({ findingId, evidenceIndex }) => {
                const finding = report.findings.find(({ id }) => id === findingId);
                if (finding) setFocus(focusOnFinding(finding, evidenceIndex));
              }}
            />
          </div>
        </>
      )}
    </div>
  );
}
