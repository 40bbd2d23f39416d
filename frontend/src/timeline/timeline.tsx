/** The first epoch from start to end: lanes on a canvas, titles beside them, findings above them. */

import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { DataSource } from "../data/source";
import { type Focus, focusOnFinding, viewOf } from "../focus";
import { seconds } from "../format";
import type { Report, Span } from "../types";
import { paintCanvas } from "../ui/canvas";
import { useSettled, useWidth } from "../ui/hooks";
import { ANNOTATION_ROW_HEIGHT, placeFlags, rowsNeeded } from "./annotations";
import { isGoodEnough } from "./answers";
import { Flags } from "./flags";
import { hoveredAt } from "./hit";
import { RULER_HEIGHT, layOut, withContents } from "./layout";
import { Minimap } from "./minimap";
import { type Theme, paint } from "./paint";
import { Titles } from "./titles";
import { Toolbar, stepped } from "./toolbar";
import { Tooltip } from "./tooltip";
import { useAnswers } from "./use_answers";
import { useControls } from "./use_controls";
import { useView } from "./use_view";
import { Scale, isWhole, whole, zoomed } from "./view";

const FLAGS_GAP = 8;
const EMPTY_HEIGHT = 240;
const LINK_AFTER_MS = 400;

interface Props {
  source: DataSource;
  report: Report;
  runKey: string;
  version: string;
  host: string | null;
  isDark: boolean;
  focus: Focus | null;
  setFocus: (focus: Focus | null) => void;
  initialRange: Span | null;
  onRange: (range: Span | null) => void;
}

export function Timeline(props: Props) {
  const { source, report, runKey, version, host, isDark, focus, setFocus, onRange } = props;
  const windowPs = report.window.duration_ps;
  const surface = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(surface);
  const { view, setView, glideTo } = useView(windowPs, props.initialRange);
  const answers = useAnswers(source, { run: runKey, host, version }, windowPs, view, width);
  useSettled(view, LINK_AFTER_MS, () => onRange(isWhole(view, windowPs) ? null : view));

  const isFirstFocus = useRef(props.initialRange !== null);
  useEffect(() => {
    // A link that names both a finding and a range means the range.
    if (focus && !isFirstFocus.current) glideTo(viewOf(focus, windowPs));
    isFirstFocus.current = false;
  }, [focus]);

  const scale = new Scale(view, Math.max(width, 1));
  const flagRows = useMemo(
    () => rowsNeeded(report.findings, windowPs, Math.max(width, 1)),
    [report, windowPs, width],
  );
  const places = useMemo(() => {
    const top = RULER_HEIGHT + flagRows * ANNOTATION_ROW_HEIGHT + FLAGS_GAP;
    return answers.whole ? layOut(answers.whole.answer, top) : null;
  }, [answers.whole, flagRows]);
  const layout = useMemo(
    () => (places && answers.best ? withContents(places, answers.best.answer) : null),
    [places, answers.best],
  );
  const names = answers.best?.answer.names ?? [];
  const height = layout?.height ?? EMPTY_HEIGHT;
  const theme = useMemo(() => themeOf(surface.current), [isDark, width === 0]);

  const controls = useControls(surface, view, windowPs, width, {
    setView,
    onClick: () => surface.current?.focus(),
    onDoubleClick: ({ x, y }) => {
      const hit = layout && hoveredAt(layout, scale, x, y);
      if (hit?.kind !== "item") return glideTo(whole(windowPs));
      const [start_ps, end_ps] = hit.item;
      glideTo(viewOf({ title: "", spans: [{ start_ps, end_ps, label: "" }], at: 0 }, windowPs));
    },
    onEscape: () => setFocus(null),
    onNext: (by) => focus && setFocus(stepped(focus, by)),
  });
  const { pointer, selection } = controls;

  useLayoutEffect(() => {
    if (!canvas.current || !layout || width === 0) return;
    paintCanvas(canvas.current, width, height, (context) =>
      paint(context, {
        layout,
        names,
        scale,
        height,
        theme,
        marked: focus?.spans ?? [],
        markedBucket: focus?.bucket ?? null,
        cursorPs: pointer ? scale.ps(pointer.x) : null,
        selection,
      }),
    );
  });

  const hovered = pointer && layout && !selection && hoveredAt(layout, scale, pointer.x, pointer.y);
  const lacksDetail = !source.isLive && !isGoodEnough(answers.best, scale.psPerPixel);
  return (
    <div class="timeline">
      <Toolbar
        {...{ source, run: runKey, host, view, focus, setFocus }}
        isWhole={isWhole(view, windowPs)}
        lanes={answers.whole?.answer.lanes ?? []}
        onZoom={(factor) => glideTo(zoomed(view, 0.5, factor, windowPs))}
        onFit={() => glideTo(whole(windowPs))}
      />
      <div class="timeline-grid">
        <div class="timeline-titles timeline-titles-minimap">overview</div>
        <Minimap {...{ windowPs, view, width, setView, answer: answers.whole?.answer ?? null }} />
        <Titles layout={layout} height={height} hasFlags={flagRows > 0} />
        <div
          class="timeline-surface"
          ref={surface}
          style={{ height: `${height}px` }}
          tabIndex={0}
          role="application"
          aria-label={`Timeline of the first epoch, showing ${seconds(view.start_ps)} to ${seconds(view.end_ps)}. Arrow keys move, plus and minus zoom, 0 shows all, n and p walk along the evidence.`}
          onKeyDown={controls.onKeyDown}
        >
          <canvas ref={canvas} aria-hidden="true" />
          <Flags
            flags={placeFlags(report.findings, scale, flagRows)}
            rows={flagRows}
            width={width}
            chosen={focus?.findingId ?? null}
            onChoose={({ findingId, evidenceIndex }) => {
              const finding = report.findings.find(({ id }) => id === findingId);
              if (finding) setFocus(focusOnFinding(finding, evidenceIndex));
            }}
          />
          {hovered && <Tooltip {...{ hovered, names, windowPs, pointer, surfaceWidth: width }} />}
          {selection && (
            <span
              class="selection-length figures"
              style={{ left: `${scale.x(selection.start_ps)}px` }}
            >
              {seconds(selection.end_ps - selection.start_ps)}
            </span>
          )}
          {!layout && <p class="timeline-message">{answers.error ?? "Reading the timeline …"}</p>}
        </div>
      </div>
      <p class="timeline-help faint">
        {controls.needsHint
          ? "Click the timeline first, or hold Ctrl, to zoom with the wheel."
          : lacksDetail
            ? "This file holds no more detail than this; the tab in TensorBoard does."
            : "Drag to zoom into a stretch, Shift and drag to move, double-click an event to see it alone, double-click beside it to see all."}
        {layout && answers.error && ` ${answers.error}`}
      </p>
    </div>
  );
}

/** The canvas paints with the colours of the style sheet. */
function themeOf(element: HTMLElement | null): Theme {
  const style = getComputedStyle(element ?? document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim() || "#777777";
  return {
    ink: colour("--ink"),
    faint: colour("--ink-faint"),
    line: colour("--line"),
  };
}
