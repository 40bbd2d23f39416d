/** A curve in its box: memory, loss, learning rate. */

import { BUCKET_COLORS } from "../palette";
import type { SeriesBox } from "./layout";
import type { Theme } from "./paint";
import type { Scale } from "./view";

const PADDING = 8;
const DOT_WIDTH = 3;
const DOTS_MOST = 60; // more points than this are a line, not dots

export function paintSeries(
  context: CanvasRenderingContext2D,
  box: SeriesBox,
  scale: Scale,
  theme: Theme,
): void {
  if (box.isFlat) return; // its title has its value
  const values = box.series.points.flatMap(([, value]) => (value === null ? [] : [value]));
  const low = values.reduce((least, value) => Math.min(least, value), Infinity);
  const high = values.reduce((most, value) => Math.max(most, value), -Infinity);
  const bottom = box.top + box.height - PADDING;
  const room = box.height - 2 * PADDING;
  const y = (value: number) => bottom - (high > low ? (value - low) / (high - low) : 0.5) * room;

  context.fillStyle = theme.line;
  context.fillRect(0, box.top + box.height, scale.width, 1);
  context.strokeStyle = theme.ink;
  context.lineWidth = 1.5;
  context.beginPath();
  // A loss is sampled; memory and learning rate stay the same until they change.
  const holds = box.series.id !== "loss";
  let isDrawing = false;
  let lastY = 0;
  for (const [ps, value] of box.series.points) {
    if (value === null) isDrawing = false;
    else if (!isDrawing) context.moveTo(scale.x(ps), y(value));
    else {
      if (holds) context.lineTo(scale.x(ps), lastY);
      context.lineTo(scale.x(ps), y(value));
    }
    if (value !== null) [isDrawing, lastY] = [true, y(value)];
  }
  context.stroke();
  paintDots(context, box, scale, theme, y);
}

/** A few points are shown one by one; a value that is not a number always is. */
function paintDots(
  context: CanvasRenderingContext2D,
  box: SeriesBox,
  scale: Scale,
  theme: Theme,
  y: (value: number) => number,
): void {
  const areFew = box.series.points.length <= DOTS_MOST;
  for (const [ps, value] of box.series.points) {
    const x = scale.x(ps);
    if (x < 0 || x > scale.width) continue;
    if (value === null) paintCross(context, x, box.top + box.height / 2);
    else if (areFew) {
      context.fillStyle = theme.ink;
      context.fillRect(x - DOT_WIDTH / 2, y(value) - DOT_WIDTH / 2, DOT_WIDTH, DOT_WIDTH);
    }
  }
}

function paintCross(context: CanvasRenderingContext2D, x: number, y: number): void {
  context.strokeStyle = BUCKET_COLORS.numerics;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x - 3, y - 3);
  context.lineTo(x + 3, y + 3);
  context.moveTo(x + 3, y - 3);
  context.lineTo(x - 3, y + 3);
  context.stroke();
}
