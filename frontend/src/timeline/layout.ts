/** Where each lane is, from top to bottom. Pure; the canvas and the titles next to it share it. */

import { GROUP_WORDS } from "../words";
import type { Lane, Series, TimelineAnswer } from "../types";

export const RULER_HEIGHT = 22;
const HEADING_HEIGHT = 22;
const ROW_HEIGHT = 16;
const ROW_GAP = 1;
const LANE_GAP = 5;
const SERIES_HEIGHT = 54;
const FLAT_SERIES_HEIGHT = 18;
const ROWS_CLOSED = 6; // rows of a lane that is not open
const ROWS_MOST = 24;
const TALLER: Record<string, number> = { ledger: 30, steps: 20 };

/** Opened like a lane: all threads are shown, however many there are. */
export const EVERY_THREAD = "threads";

export interface Box {
  id: string;
  title: string;
  top: number;
  height: number;
}

export interface LaneBox extends Box {
  kind: "lane";
  lane: Lane;
  rows: number;
  rowHeight: number;
  /** Whether it can be opened or closed, and its state. */
  fold: "none" | "closed" | "open";
}

export interface SeriesBox extends Box {
  kind: "series";
  series: Series;
  isFlat: boolean;
}

export interface Heading {
  title: string;
  top: number;
  /** Threads that are not shown. */
  hidden: number;
}

export interface Layout {
  boxes: (LaneBox | SeriesBox)[];
  headings: Heading[];
  height: number;
}

export function layOut(answer: TimelineAnswer, opened: ReadonlySet<string> = new Set()): Layout {
  const boxes: (LaneBox | SeriesBox)[] = [];
  const headings: Heading[] = [];
  let y = 0;
  let group: string | null = null;

  const startGroup = (title: string, hidden = 0) => {
    if (title === group) return;
    group = title;
    if (!title) return;
    headings.push({ title, top: y, hidden });
    y += HEADING_HEIGHT;
  };
  const shownThreads = answer.lanes.filter((lane) => lane.group === "threads").length;
  for (const lane of answer.lanes) {
    const hidden = lane.group === "threads" ? answer.threads - shownThreads : 0;
    startGroup(GROUP_WORDS[lane.group] ?? lane.group, hidden);
    const box = laneBox(lane, y, opened.has(lane.id));
    boxes.push(box);
    y += box.height + LANE_GAP;
  }
  for (const series of answer.series) {
    startGroup("Curves");
    const { id, title } = series;
    const isFlat = isConstant(series);
    const height = isFlat ? FLAT_SERIES_HEIGHT : SERIES_HEIGHT;
    boxes.push({ kind: "series", id, title, top: y, height, series, isFlat });
    y += height + LANE_GAP;
  }
  return { boxes, headings, height: y };
}

function laneBox(lane: Lane, top: number, isOpen: boolean): LaneBox {
  const closedRows = lane.group === "threads" ? 1 : ROWS_CLOSED;
  const canFold = lane.depth > closedRows;
  const rows = Math.max(1, Math.min(lane.depth, isOpen ? ROWS_MOST : closedRows));
  const rowHeight = TALLER[lane.id] ?? ROW_HEIGHT;
  return {
    kind: "lane",
    id: lane.id,
    title: lane.title,
    top,
    height: rows * (rowHeight + ROW_GAP) - ROW_GAP,
    lane,
    rows,
    rowHeight,
    fold: !canFold ? "none" : isOpen ? "open" : "closed",
  };
}

/** A flat line says no more than its value does. */
function isConstant({ points }: Series): boolean {
  return (
    points.length > 0 && points.every(([, value]) => value !== null && value === points[0]![1])
  );
}

/** The same places with the contents of a finer answer; lanes that it lacks are empty. */
export function withContents(layout: Layout, answer: TimelineAnswer): Layout {
  const lanes = new Map(answer.lanes.map((lane) => [lane.id, lane]));
  const series = new Map(answer.series.map((one) => [one.id, one]));
  const boxes = layout.boxes.map((box) =>
    box.kind === "lane"
      ? { ...box, lane: lanes.get(box.id) ?? { ...box.lane, items: [] } }
      : { ...box, series: series.get(box.id) ?? box.series },
  );
  return { ...layout, boxes };
}

export function rowTop(box: LaneBox, row: number): number {
  return box.top + row * (box.rowHeight + ROW_GAP);
}

export function rowAt(box: LaneBox, y: number): number {
  return Math.min(box.rows - 1, Math.floor((y - box.top) / (box.rowHeight + ROW_GAP)));
}
