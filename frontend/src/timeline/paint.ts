/**
 * The lanes on a canvas. Our own code, not a chart library: those keep an object for each interval,
 * and a trace has a hundred thousand. Here an interval that no pixel could show costs one comparison.
 */

import { cut, tickLabel } from "../format";
import { BUCKET_COLORS, GROUP_COLORS, bucketOf, inkOn } from "../palette";
import { spokenCause } from "../words";
import type { Bucket, Division, Ps, Span } from "../types";
import { bucketFill } from "../ui/canvas";
import type { Chosen } from "./chosen";
import { type LaneBox, type Layout, RULER_HEIGHT, rowTop } from "./layout";
import { paintSeries } from "./paint_series";
import { visibleOfRow } from "./rows";
import { type Scale, ticks } from "./view";

export interface Theme {
  ink: string;
  faint: string;
  line: string;
}

export interface Picture {
  layout: Layout;
  names: readonly string[];
  scale: Scale;
  /** The part of the lanes that is on the screen. */
  top: number;
  height: number;
  theme: Theme;
  marked: readonly Span[];
  markedBucket: Bucket | null;
  /** The cursor, and the stretch that is or was selected by dragging. */
  cursorPs: Ps | null;
  selection: Span | null;
  chosen: Chosen | null;
}

const FONT = "11px Roboto, 'Helvetica Neue', Arial, sans-serif";
const CHARACTER_PX = 6;
const TEXT_LEAST_PX = 30;
const TICK_EVERY_PX = 110;
const TICK_LABEL_PX = 48; // closer to the edge, a label would be cut off

export function paint(context: CanvasRenderingContext2D, picture: Picture): void {
  const { layout, scale, top, height, theme } = picture;
  context.clearRect(0, 0, scale.width, height);
  context.font = FONT;
  context.textBaseline = "middle";
  paintGrid(context, picture);
  context.save();
  context.translate(0, -top);
  for (const box of layout.boxes) {
    if (box.top > top + height || box.top + box.height < top) continue;
    if (box.kind === "lane") paintLane(context, box, scale, picture.names, theme);
    else paintSeries(context, box, scale, theme);
  }
  paintChosen(context, picture);
  context.restore();
  paintMarks(context, picture);
}

function paintGrid(context: CanvasRenderingContext2D, { scale, height, theme }: Picture): void {
  context.fillStyle = theme.line;
  for (const ps of ticks(scale.view, scale.width / TICK_EVERY_PX).at) {
    context.fillRect(Math.round(scale.x(ps)), 0, 1, height);
  }
}

/** Times count from `originPs`: the first epoch's start, or a trace's. */
export function paintRuler(
  context: CanvasRenderingContext2D,
  { scale, theme, originPs }: { scale: Scale; theme: Theme; originPs: Ps },
): void {
  context.clearRect(0, 0, scale.width, RULER_HEIGHT);
  context.font = FONT;
  context.textBaseline = "middle";
  const { start_ps, end_ps } = scale.view;
  const view = { start_ps: start_ps - originPs, end_ps: end_ps - originPs };
  const { stepPs, at } = ticks(view, scale.width / TICK_EVERY_PX);
  for (const ps of at) {
    const x = Math.round(scale.x(ps + originPs));
    context.fillStyle = theme.line;
    context.fillRect(x, RULER_HEIGHT - 6, 1, 6);
    if (x > scale.width - TICK_LABEL_PX) continue;
    context.fillStyle = theme.faint;
    context.fillText(tickLabel(ps, stepPs), x + 4, RULER_HEIGHT / 2);
  }
}

/** Without a theme, the names are left out. */
export function paintLane(
  context: CanvasRenderingContext2D,
  box: LaneBox,
  scale: Scale,
  names: readonly string[],
  theme: Theme | null,
): void {
  const fillFor = fillsOf(context, box, names);
  for (let row = 0; row < box.rows; row++) {
    const top = rowTop(box, row);
    const [from, to] = visibleOfRow(box.lane, row, scale.view);
    let paintedTo = -1; // where the color ends
    for (let i = from; i < to; i++) {
      const item = box.lane.items[i]!;
      const endX = scale.x(item[1]);
      if (endX < paintedTo) continue; // inside a pixel that is already painted
      // Whole pixels: sharper to the eye, and several times faster to paint.
      const left = Math.max(Math.round(scale.x(item[0])), 0);
      const right = Math.max(Math.min(Math.round(endX), scale.width), left + 1);
      const width = right - left;
      paintedTo = right;
      if (item[5] && !isNearlyOne(item[5])) {
        paintDivision(context, item[5], fillFor, { left, top, width, height: box.rowHeight });
        continue;
      }
      context.fillStyle = fillFor(item[2]);
      // A gap of one pixel between neighbors, if there is room.
      context.fillRect(left, top, width > 3 ? width - 1 : width, box.rowHeight);
      if (theme && width >= TEXT_LEAST_PX) {
        paintName(context, box, names[item[2]] ?? "", left, top, width, theme);
      }
    }
  }
}

const NEARLY_ALL = 0.95;

/** A long interval and the specks that begin in the same pixel. */
function isNearlyOne(division: Division): boolean {
  const whole = division.reduce((sum, [, ps]) => sum + ps, 0);
  return (division[0]?.[1] ?? 0) >= NEARLY_ALL * whole;
}

/** Intervals too short to show separately, stacked by the share of each cause. */
function paintDivision(
  context: CanvasRenderingContext2D,
  division: Division,
  fillFor: FillFor,
  { left, top, width, height }: { left: number; top: number; width: number; height: number },
): void {
  const whole = division.reduce((sum, [, ps]) => sum + ps, 0);
  let bottom = top + height;
  for (const [name, ps] of division) {
    const part = (height * ps) / whole;
    context.fillStyle = fillFor(name);
    context.fillRect(left, bottom - part, width, part);
    bottom -= part;
  }
}

function paintName(
  context: CanvasRenderingContext2D,
  box: LaneBox,
  name: string,
  left: number,
  top: number,
  width: number,
  theme: Theme,
): void {
  const isLedger = box.id === "ledger";
  const text = isLedger ? spokenCause(name) : name;
  const room = Math.floor((width - 8) / CHARACTER_PX);
  if (room < 3) return;
  context.fillStyle = isLedger ? inkOn(bucketOf(name)) : theme.ink;
  context.fillText(cut(text, room), left + 4, top + box.rowHeight / 2 + 0.5, width - 6);
}

// ---------------------------------------------------------------- colors

type FillFor = (nameIndex: number) => string | CanvasPattern;

const SHADES = ["59", "80", "6B", "92"]; // alpha: neighbors with different names look different

/** The ledger has the buckets' own colors, every other lane shades of its group's. */
function fillsOf(
  context: CanvasRenderingContext2D,
  box: LaneBox,
  names: readonly string[],
): FillFor {
  if (box.id === "ledger") {
    return (nameIndex) => bucketFill(context, bucketOf(names[nameIndex] ?? ""));
  }
  const color = GROUP_COLORS[box.lane.group] ?? GROUP_COLORS.training;
  const shades = SHADES.map((alpha) => color + alpha);
  return (nameIndex) => shades[nameIndex % shades.length]!;
}

// ---------------------------------------------------------------- marks over everything

function paintChosen(context: CanvasRenderingContext2D, picture: Picture): void {
  const { chosen, layout, scale, theme } = picture;
  const box = layout.boxes.find(({ id }) => id === chosen?.lane);
  if (!chosen || box?.kind !== "lane" || chosen.row >= box.rows) return;
  const left = Math.max(Math.round(scale.x(chosen.start_ps)), -2);
  const right = Math.min(Math.round(scale.x(chosen.end_ps)), scale.width + 2);
  if (right < 0 || left > scale.width) return;
  context.strokeStyle = theme.ink;
  context.lineWidth = 2;
  const top = rowTop(box, chosen.row);
  context.strokeRect(left - 1, top - 1, Math.max(right - left, 2) + 1, box.rowHeight + 2);
}

function paintMarks(context: CanvasRenderingContext2D, picture: Picture): void {
  const { scale, height, theme, marked, markedBucket, cursorPs, selection } = picture;
  const color = markedBucket ? BUCKET_COLORS[markedBucket] : theme.ink;
  for (const span of marked) paintBand(context, span, color, "1F", scale, height);
  if (selection) paintBand(context, selection, theme.ink, "1F", scale, height);
  if (cursorPs !== null) {
    context.fillStyle = theme.faint;
    context.fillRect(Math.round(scale.x(cursorPs)), 0, 1, height);
  }
}

function paintBand(
  context: CanvasRenderingContext2D,
  span: Span,
  color: string,
  alpha: string,
  scale: Scale,
  height: number,
): void {
  const left = Math.max(scale.x(span.start_ps), -2);
  const right = Math.min(scale.x(span.end_ps), scale.width + 2);
  if (right < -1 || left > scale.width + 1) return;
  context.fillStyle = color + alpha;
  context.fillRect(left, 0, Math.max(right - left, 1), height);
  context.fillStyle = color;
  context.fillRect(left, 0, 1, height);
  context.fillRect(right - 1, 0, 1, height);
}
