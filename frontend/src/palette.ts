/**
 * The colors of every view: Okabe and Ito's palette, which can be told apart with any kind of color vision.
 * The same as stall_analyzer/report/palette.py; a test holds them together.
 */

import type { Bucket, LaneGroup, Status } from "./types";

export const BUCKET_COLORS: Record<Bucket, string> = {
  input: "#E69F00",
  compile: "#56B4E9",
  memory: "#D55E00",
  numerics: "#CC79A7",
  compute: "#009E73",
  communication: "#F0E442",
  host: "#0072B2",
  profiler: "#999999",
  unknown: "#777777",
};

/** In the order of every bar. */
export const BUCKETS = Object.keys(BUCKET_COLORS) as Bucket[];

export const STATUS_COLORS: Record<Status, string> = {
  healthy: "#009E73",
  slow_once: "#56B4E9",
  slow_always: "#E69F00",
  learning_nothing: "#CC79A7",
  stuck: "#D55E00",
  dead: "#D55E00",
  running: "#0072B2",
  unknown: "#999999",
};

/** Dark text is readable on every color but this one. */
export function inkOn(bucket: Bucket): string {
  return bucket === "host" ? "#FFFFFF" : "#000000";
}

/** Lanes of events are tinted by their bucket; only the ledger has full colors. */
export const GROUP_COLORS: Record<LaneGroup, string> = {
  attribution: "#777777",
  training: "#5B7083",
  input: BUCKET_COLORS.input,
  compile: BUCKET_COLORS.compile,
  device: BUCKET_COLORS.compute,
  threads: "#5B7083",
};

export function bucketOf(cause: string): Bucket {
  const bucket = cause.split(".", 1)[0] as Bucket;
  return bucket in BUCKET_COLORS ? bucket : "unknown";
}

// ---------------------------------------------------------------- shades

type Rgb = [red: number, green: number, blue: number];

const LIGHT_SURFACE: Rgb = [0xff, 0xff, 0xff]; // --surface of the style sheet
const DARK_SURFACE: Rgb = [0x3a, 0x3a, 0x3a];
const MIDDLE_LUMINANCE = 0.179; // black and white are equally readable on it

/** The bucket's color, as strong as its share, and a readable text color. */
export function heat(
  bucket: Bucket,
  share: number,
  isDark: boolean,
): { backgroundColor: string; color: string } {
  const surface = isDark ? DARK_SURFACE : LIGHT_SURFACE;
  const full = rgbOf(BUCKET_COLORS[bucket]);
  const mixed = surface.map((part, i) => Math.round(part + (full[i]! - part) * share)) as Rgb;
  return {
    backgroundColor: `rgb(${mixed.join(" ")})`,
    color: luminance(mixed) > MIDDLE_LUMINANCE ? "#000000" : "#FFFFFF",
  };
}

function rgbOf(color: string): Rgb {
  return [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16)) as Rgb;
}

/** As WCAG defines it, from 0 to 1. */
export function luminance(rgb: Rgb): number {
  const [red, green, blue] = rgb.map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as Rgb;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
