/** Where each lane lies, from top to bottom. Pure; the canvas and the titles beside it share it. */

import { GROUP_WORDS } from "../words";
import type { Lane, Series, TimelineAnswer } from "../types";

export const RULER_HEIGHT = 26;
const HEADING_HEIGHT = 22;
const ROW_HEIGHT = 16;
const ROW_GAP = 1;
const LANE_GAP = 5;
const SERIES_HEIGHT = 54;
const ROWS_MOST = 12; // deeper nesting than this tells nothing at the size of a lane
const TALLER: Record<string, number> = { ledger: 30, steps: 20 };

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
}

export interface SeriesBox extends Box {
  kind: "series";
  series: Series;
}

export interface Heading {
  title: string;
  top: number;
}

export interface Layout {
  boxes: (LaneBox | SeriesBox)[];
  headings: Heading[];
  height: number;
}

/** `top` is where the lanes begin: below the ruler and the annotations. */
export function layOut(answer: TimelineAnswer, top: number): Layout {
  const boxes: (LaneBox | SeriesBox)[] = [];
  const headings: Heading[] = [];
  let y = top;
  let group: string | null = null;

  const startGroup = (title: string) => {
    if (title === group) return;
    group = title;
    if (!title) return;
    headings.push({ title, top: y });
    y += HEADING_HEIGHT;
  };
  for (const lane of answer.lanes) {
    startGroup(GROUP_WORDS[lane.group] ?? lane.group);
    const rows = Math.min(Math.max(1, lane.depth), ROWS_MOST);
    const rowHeight = TALLER[lane.id] ?? ROW_HEIGHT;
    const height = rows * (rowHeight + ROW_GAP) - ROW_GAP;
    boxes.push({
      kind: "lane",
      id: lane.id,
      title: lane.title,
      top: y,
      height,
      lane,
      rows,
      rowHeight,
    });
    y += height + LANE_GAP;
  }
  for (const series of answer.series) {
    startGroup("Curves");
    const { id, title } = series;
    boxes.push({ kind: "series", id, title, top: y, height: SERIES_HEIGHT, series });
    y += SERIES_HEIGHT + LANE_GAP;
  }
  return { boxes, headings, height: y };
}

/** The same places with the contents of a finer answer; lanes that it lacks are empty in it. */
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
  return box.top + Math.min(row, box.rows - 1) * (box.rowHeight + ROW_GAP);
}
