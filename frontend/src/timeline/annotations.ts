/** Findings written where they happen: flags above the lanes, in as few rows as fit. Pure. */

import { cut } from "../format";
import { evidenceLabel } from "../model";
import type { Bucket, Evidence, Finding, Ps } from "../types";
import { Scale, whole } from "./view";

export const ANNOTATION_ROW_HEIGHT = 18;
const ROWS_MOST = 3;
const CHARACTER_PX = 6.3; // average width of a character in the label's font
const LABEL_PADDING_PX = 14;
const LABEL_MOST_CHARACTERS = 56;

export interface Flag {
  findingId: string;
  evidenceIndex: number;
  bucket: Bucket;
  label: string;
  x: number;
  endX: number;
  /** Null if there is no room for the label: then only its place is marked. */
  row: number | null;
  labelWidth: number;
}

/**
 * Each finding is named where it begins; its further evidence says what it is. The weightiest
 * finding gets its labels first, the others what room is left.
 */
export function placeFlags(findings: readonly Finding[], scale: Scale, rows: number): Flag[] {
  const taken: [number, number][][] = Array.from({ length: rows }, () => []);
  return findings.flatMap(({ id, bucket, title, evidence }) =>
    byWeight(evidence).flatMap(([one, evidenceIndex], rank) => {
      const [x, endX] = [scale.x(one.start_ps), scale.x(one.end_ps)];
      if (endX < 0 || x > scale.width) return [];
      const label = cut(rank === 0 ? title : evidenceLabel(one), LABEL_MOST_CHARACTERS);
      const wanted = label.length * CHARACTER_PX + LABEL_PADDING_PX;
      const labelWidth = Math.min(wanted, scale.width);
      const left = Math.min(Math.max(x, 0), Math.max(0, scale.width - labelWidth));
      const row = freeRow(taken, left, left + labelWidth);
      return [{ findingId: id, evidenceIndex, bucket, label, x, endX, row, labelWidth }];
    }),
  );
}

/** How many rows the flags need when everything is shown; zooming does not move the lanes. */
export function rowsNeeded(findings: readonly Finding[], windowPs: Ps, width: number): number {
  const flags = placeFlags(findings, new Scale(whole(windowPs), width), ROWS_MOST);
  return flags.reduce((rows, { row }) => Math.max(rows, (row ?? 0) + 1), 0);
}

/** The first one, then the others by length. */
function byWeight(evidence: readonly Evidence[]): [Evidence, number][] {
  const [first, ...others] = evidence
    .map((one, index): [Evidence, number] => [one, index])
    .sort(([a], [b]) => a.start_ps - b.start_ps);
  const length = ([one]: [Evidence, number]) => one.end_ps - one.start_ps;
  return first ? [first, ...others.sort((a, b) => length(b) - length(a))] : [];
}

/** Takes the place and returns its row; null if every row is full there. */
function freeRow(taken: [number, number][][], start: number, end: number): number | null {
  const row = taken.findIndex((places) => places.every(([from, to]) => end <= from || to <= start));
  if (row < 0) return null;
  taken[row]!.push([start, end]);
  return row;
}

/** Where a flag's label begins: at its evidence, but never off the screen. */
export function flagLeft(flag: Flag, width: number): number {
  return Math.min(Math.max(flag.x, 0), Math.max(0, width - flag.labelWidth));
}
