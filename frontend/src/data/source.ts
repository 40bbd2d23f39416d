/** Where the page's data comes from. Views know only this interface. */

import type {
  EventAnswer,
  ManualPage,
  Ps,
  RangeAnswer,
  ReportAnswer,
  RunsAnswer,
  SearchAnswer,
  Span,
  TimelineAnswer,
} from "../types";
import { EmbeddedSource } from "./embedded";
import { HttpSource } from "./http";

export interface TimelineRequest extends Span {
  run: string;
  host: string | null;
  pixels: number;
  /** Lanes of threads that are shown in full depth. */
  opened?: readonly string[];
}

export interface EventRequest extends Span {
  run: string;
  host: string | null;
  lane: string;
  row: number;
}

export interface RangeRequest extends Span {
  run: string;
  host: string | null;
}

export interface SearchRequest {
  run: string;
  host: string | null;
  text: string;
}

/** A timeline, and the time of one pixel that it was made for. */
export interface Detail {
  answer: TimelineAnswer;
  psPerPixel: Ps;
}

/** What was requested is being made: it will be there in a moment. */
export class NotReady extends Error {}

/** Why it is requested: `again` to retry after a failure, `fresh` because files have changed. */
export interface Reason {
  again: boolean;
  fresh: boolean;
}

/** Which runs to analyze if there are too many to analyze all of them automatically. */
export interface RunsWish {
  names: readonly string[];
  all: boolean;
}

export interface DataSource {
  /** False for a file: nothing will ever change, so nothing is requested twice. */
  readonly isLive: boolean;
  /** When a file was written. */
  readonly written?: string;
  runs(wish?: RunsWish, reason?: Reason): Promise<RunsAnswer>;
  report(run: string, reason?: Reason): Promise<ReportAnswer>;
  timeline(request: TimelineRequest, signal?: AbortSignal): Promise<Detail>;
  event(request: EventRequest, signal?: AbortSignal): Promise<EventAnswer>;
  range(request: RangeRequest, signal?: AbortSignal): Promise<RangeAnswer>;
  search(request: SearchRequest, signal?: AbortSignal): Promise<SearchAnswer>;
  manual(id: string): Promise<ManualPage>;
}

export const EMBEDDED_ID = "stall-data";

/** The one-file report contains its data; otherwise the back end is asked. */
export function chooseSource(document: Document): DataSource {
  const embedded = document.getElementById(EMBEDDED_ID);
  return embedded
    ? new EmbeddedSource(JSON.parse(embedded.textContent ?? ""))
    : new HttpSource(document.baseURI);
}
