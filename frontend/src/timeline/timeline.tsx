/** The first epoch from start to end: lanes on a canvas, titles next to them, findings above them. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { DataSource } from "../data/source";
import { type Focus, viewOf } from "../focus";
import { seconds } from "../format";
import type { Report, Span, Trace } from "../types";
import { useSettled, useWidth } from "../ui/hooks";
import { isGoodEnough } from "./answers";
import { type Chosen, type Direction, chosenOf, neighbor, viewAround } from "./chosen";
import { traceAt } from "./clock";
import { EventPanel } from "./event_panel";
import { Head } from "./head";
import { hoveredAt } from "./hit";
import { Lanes } from "./lanes";
import { layOut, withContents } from "./layout";
import type { Theme } from "./paint";
import { RangePanel } from "./range_panel";
import { Toolbar, stepped } from "./toolbar";
import { useAnswers } from "./use_answers";
import { type Pointer, useControls } from "./use_controls";
import { useView } from "./use_view";
import { Scale, isWhole, whole, zoomed } from "./view";

const LINK_AFTER_MS = 400;

interface Props {
  source: DataSource;
  report: Report;
  /** Empty if there is no trace viewer to link to. */
  traces: readonly Trace[];
  hasTraceViewer: boolean;
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
  const width = useWidth(surface);
  const [opened, setOpened] = useState<readonly string[]>([]);
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [range, setRange] = useState<Span | null>(null);
  const [isTraceClock, setTraceClock] = useState(false);
  const { view, setView, glideTo } = useView(windowPs, props.initialRange);
  const shown = { run: runKey, host, version, opened };
  const answers = useAnswers(source, shown, windowPs, view, width);
  useSettled(view, LINK_AFTER_MS, () => onRange(isWhole(view, windowPs) ? null : view));

  const isFirstFocus = useRef(props.initialRange !== null);
  useEffect(() => {
    // A link that names both a finding and a range means the range.
    if (focus && !isFirstFocus.current) glideTo(viewOf(focus, windowPs));
    isFirstFocus.current = false;
    if (focus?.event) choose(focus.event);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- moves when the focus does, not when the view has been moved
  }, [focus]);

  const scale = new Scale(view, Math.max(width, 1));
  const places = useMemo(
    () => answers.whole && layOut(answers.whole.answer, new Set(opened)),
    [answers.whole, opened],
  );
  const layout = useMemo(
    () => (places && answers.best ? withContents(places, answers.best.answer) : null),
    [places, answers.best],
  );
  // eslint-disable-next-line react-hooks/exhaustive-deps -- colors are read from the page when its theme changes or it is first laid out
  const theme = useMemo(() => themeOf(surface.current), [isDark, width === 0]);
  const trace = traceAt(props.traces, host ?? report.host, view.start_ps);
  const originPs = isTraceClock && trace ? trace.start_ps : 0;

  const choose = (next: Chosen | null) => {
    setChosen(next);
    if (next) setRange(null);
  };
  const itemUnder = ({ x, y }: Pointer) => {
    const hit = layout && hoveredAt(layout, scale, x, y);
    return hit?.kind === "item" ? chosenOf(hit.box, hit.item) : null;
  };
  const go = (direction: Direction): boolean => {
    if (!chosen || !layout) return false;
    const next = neighbor(layout, chosen, direction);
    if (next) {
      choose(next);
      setView(viewAround(view, next, windowPs));
    }
    return true;
  };
  const zoomTo = (span: Span) =>
    glideTo(viewOf({ title: "", spans: [{ ...span, label: "" }], at: 0 }, windowPs));
  const toggle = (lane: string) =>
    setOpened(opened.includes(lane) ? opened.filter((one) => one !== lane) : [...opened, lane]);

  const controls = useControls(surface, view, windowPs, width, {
    setView,
    onClick: (pointer) => {
      surface.current?.focus({ preventScroll: true });
      setRange(null);
      choose(itemUnder(pointer));
    },
    onDoubleClick: (pointer) => {
      const item = itemUnder(pointer);
      if (item) zoomTo(item);
      else glideTo(whole(windowPs));
    },
    onEscape: () => {
      if (!chosen && !range) setFocus(null);
      setChosen(null);
      setRange(null);
    },
    onNext: (by) => focus && setFocus(stepped(focus, by)),
    onGo: go,
    onRange: (span) => {
      setChosen(null);
      setRange(span);
    },
    onZoomIn: () => {
      const span = range ?? chosen;
      if (span) zoomTo(span);
    },
  });
  const { pointer } = controls;

  const lacksDetail = !source.isLive && !isGoodEnough(answers.best, scale.psPerPixel);
  const laneTitle = (id: string) =>
    answers.whole?.answer.lanes.find((lane) => lane.id === id)?.title ?? id;
  const about = { source, run: runKey, host, report, originPs };
  return (
    <div class="timeline">
      <Toolbar
        {...{ source, run: runKey, host, view, focus, setFocus, originPs }}
        isWhole={isWhole(view, windowPs)}
        lanes={answers.whole?.answer.lanes ?? []}
        clock={trace && { isTrace: isTraceClock, onChange: setTraceClock }}
        onZoom={(factor) => glideTo(zoomed(view, 0.5, factor, windowPs))}
        onFit={() => glideTo(whole(windowPs))}
      />
      <Head {...{ report, windowPs, view, width, theme, originPs, setView, focus, setFocus }} />
      <Lanes
        surface={surface}
        {...{ layout, theme, scale, focus, chosen, pointer, windowPs }}
        names={answers.best?.answer.names ?? []}
        selection={controls.selection ?? range}
        isDragging={controls.selection !== null}
        error={answers.error}
        label={`Timeline of the first epoch, showing ${seconds(view.start_ps)} to ${seconds(view.end_ps)}. ${KEYS_HELP}`}
        onKeyDown={controls.onKeyDown}
        onToggle={toggle}
      />
      {chosen && (
        <EventPanel
          {...about}
          {...{ chosen, windowPs }}
          traces={props.hasTraceViewer ? props.traces : []}
          title={laneTitle(chosen.lane)}
          onZoom={() => zoomTo(chosen)}
          onClose={() => setChosen(null)}
        />
      )}
      {range && (
        <RangePanel
          {...about}
          range={range}
          onZoom={() => {
            glideTo(range);
            setRange(null);
          }}
          onClose={() => setRange(null)}
        />
      )}
      <p class="timeline-help faint">
        {controls.needsHint
          ? "Click the timeline first, or hold Ctrl, to zoom with the wheel."
          : lacksDetail
            ? "This file holds no more detail than this; the Stall tab in TensorBoard shows more."
            : HELP}
        {layout && answers.error && ` ${answers.error}`}
      </p>
    </div>
  );
}

const HELP =
  "Click an event for its details; the arrow keys then move between events. Drag over a stretch to summarize it. W and S zoom, A and D move, 0 shows all.";
const KEYS_HELP =
  "W and S zoom, A and D move, 0 shows all. The arrow keys move from the chosen event to those next to, above and below it; Enter zooms to it; n and p step through the evidence.";

/** The canvas paints with the colors of the style sheet. */
function themeOf(element: HTMLElement | null): Theme {
  const style = getComputedStyle(element ?? document.documentElement);
  const color = (name: string) => style.getPropertyValue(name).trim() || "#777777";
  return {
    ink: color("--ink"),
    faint: color("--ink-faint"),
    line: color("--line"),
  };
}
