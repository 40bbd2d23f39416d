/**
 * A stacked bar per step. On a canvas, because an epoch may have a hundred thousand steps. To a
 * screen reader it is a slider along the steps, which says what the picture shows for each.
 */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { counted, seconds } from "../format";
import {
  type StepColumn,
  cutLengths,
  describeColumn,
  duration,
  median,
  parts,
  stepAxisEnd,
  stepColumns,
} from "../model";
import type { Ps, Step } from "../types";
import { bucketFill, paintCanvas } from "../ui/canvas";
import { useWidth } from "../ui/hooks";

const HEIGHT = 120;
const COLUMN_LEAST_PX = 3;
const COLUMN_MOST_PX = 90;
const CUT_PX = 6; // below the top

interface Props {
  steps: Step[];
  title?: string;
  /** Where the axis ends; set if several charts share a scale. */
  axisEnd?: Ps;
  onStep: (step: Step) => void;
}

export function StepChart({ steps, title = "Steps", onStep, ...shared }: Props) {
  const surface = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(surface);
  const [at, setAt] = useState<number | null>(null);
  const columns = useMemo(() => stepColumns(steps, width / COLUMN_LEAST_PX), [steps, width]);
  const columnWidth = Math.min(width / Math.max(columns.length, 1), COLUMN_MOST_PX);
  const ownAxisEnd = useMemo(() => stepAxisEnd(steps), [steps]);
  const axisEnd = shared.axisEnd ?? ownAxisEnd;
  const inShort = useMemo(() => summary(steps), [steps]);

  useEffect(() => {
    if (!canvas.current || width === 0) return;
    paintCanvas(canvas.current, width, HEIGHT, (context) => {
      context.clearRect(0, 0, width, HEIGHT);
      columns.forEach((column, index) =>
        paintColumn(context, column, index * columnWidth, columnWidth, axisEnd, index === at),
      );
      context.fillStyle = getComputedStyle(canvas.current!).color;
      paintCutLengths(context, columns, columnWidth, axisEnd, width);
    });
    // eslint-disable-next-line react-hooks/exhaustive-deps -- columns follow from steps and width; the theme is that of the page
  }, [steps, width, at, axisEnd, document.documentElement.dataset["theme"]]);

  if (steps.length < 2) return null;
  const last = columns.length - 1;
  const show = (index: number | null) =>
    setAt(index === null ? null : Math.max(0, Math.min(last, index)));
  const go = () => {
    const column = at === null ? undefined : columns[at];
    if (column) onStep(column.step);
  };
  const keys: Record<string, () => void> = {
    ArrowLeft: () => show((at ?? 1) - 1),
    ArrowRight: () => show((at ?? -1) + 1),
    Home: () => show(0),
    End: () => show(last),
    Enter: go,
    " ": go,
  };
  const chosen = at === null ? null : columns[at];
  return (
    <div class="step-chart">
      <h3>
        {title} <span class="faint">{inShort}</span>
      </h3>
      <div
        ref={surface}
        class="step-surface"
        style={{ height: `${HEIGHT}px` }}
        tabIndex={0}
        role="slider"
        aria-label="Steps of the first epoch; Enter shows one in the timeline"
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={at ?? 0}
        aria-valuetext={chosen ? describeColumn(chosen) : inShort}
        onKeyDown={(event) => {
          const action = keys[event.key];
          if (!action) return;
          event.preventDefault();
          action();
        }}
        onPointerMove={(event) => {
          const left = event.currentTarget.getBoundingClientRect().left;
          const index = Math.floor((event.clientX - left) / columnWidth);
          show(index <= last ? index : null);
        }}
        onPointerLeave={() => setAt(null)}
        onClick={go}
      >
        <canvas ref={canvas} aria-hidden="true" />
      </div>
      <p class="step-caption faint">
        {chosen ? describeColumn(chosen) : caption(steps, axisEnd, columns.length)}
      </p>
    </div>
  );
}

function summary(steps: Step[]): string {
  const durations = steps.map(duration);
  const longest = durations.reduce((most, ps) => Math.max(most, ps), 0);
  return `${counted(steps.length, "step")}, median ${seconds(median(durations))}, longest ${seconds(longest)}`;
}

function caption(steps: Step[], axisEnd: number, columns: number): string {
  const cut = steps.filter((step) => duration(step) > axisEnd).length;
  const notes = ["Click a step to see it in the timeline."];
  if (columns < steps.length) notes.push("Each column shows the longest step of a group.");
  if (cut > 0)
    notes.push(
      `The scale ends at ${seconds(axisEnd)}: ${counted(cut, "step")} ${cut === 1 ? "is" : "are"} cut off.`,
    );
  return notes.join(" ");
}

function paintColumn(
  context: CanvasRenderingContext2D,
  { step }: StepColumn,
  left: number,
  width: number,
  axisEnd: number,
  isChosen: boolean,
): void {
  const length = duration(step);
  const isCut = length > axisEnd;
  const height = axisEnd > 0 ? (Math.min(length, axisEnd) / axisEnd) * (HEIGHT - 2) : 0;
  const gap = width > 5 ? 1 : 0;
  context.globalAlpha = isChosen ? 0.7 : 1;
  let bottom = HEIGHT;
  for (const { bucket, ps } of parts(step.buckets_ps)) {
    const partHeight = (ps / length) * height; // a cut column keeps its proportions
    context.fillStyle = bucketFill(context, bucket);
    context.fillRect(left, bottom - partHeight, Math.max(width - gap, 1), partHeight);
    bottom -= partHeight;
  }
  context.globalAlpha = 1;
  if (!isCut) return;
  context.clearRect(left, CUT_PX, width, 2);
  context.clearRect(left, CUT_PX + 5, width, 2);
}

function paintCutLengths(
  context: CanvasRenderingContext2D,
  columns: readonly StepColumn[],
  columnWidth: number,
  axisEnd: number,
  width: number,
): void {
  context.font = "12px Roboto, 'Helvetica Neue', Arial, sans-serif";
  const textWidth = (text: string) => context.measureText(text).width;
  for (const { text, left } of cutLengths(columns, columnWidth, axisEnd, width, textWidth)) {
    context.fillText(text, left, 12);
  }
}
