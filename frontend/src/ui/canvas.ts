/** Canvases that are sharp on every screen, and the buckets' colors on them. */

import { BUCKET_COLORS } from "../palette";
import type { Bucket } from "../types";

export function paintCanvas(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
  draw: (context: CanvasRenderingContext2D) => void,
): void {
  const ratio = window.devicePixelRatio || 1;
  const [pixelWidth, pixelHeight] = [Math.round(width * ratio), Math.round(height * ratio)];
  // Setting the size clears the canvas and costs a frame, so only when it changes.
  if (canvas.width !== pixelWidth || canvas.height !== pixelHeight) {
    canvas.width = pixelWidth;
    canvas.height = pixelHeight;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  if (!context) return;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  draw(context);
}

let hatching: CanvasPattern | null = null;

/** Two grays are hard to tell apart; what is unknown is hatched everywhere. */
export function bucketFill(
  context: CanvasRenderingContext2D,
  bucket: Bucket,
): string | CanvasPattern {
  return bucket === "unknown" ? (hatching ??= hatch(context)) : BUCKET_COLORS[bucket];
}

function hatch(context: CanvasRenderingContext2D): CanvasPattern {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const pen = tile.getContext("2d")!;
  pen.fillStyle = BUCKET_COLORS.unknown;
  pen.fillRect(0, 0, 8, 8);
  pen.strokeStyle = "#FFFFFF66";
  pen.lineWidth = 2;
  for (const x of [-4, 4, 12]) {
    pen.beginPath();
    pen.moveTo(x - 4, 8);
    pen.lineTo(x + 4, 0);
    pen.stroke();
  }
  return context.createPattern(tile, "repeat")!;
}
