/** The data of a running TensorBoard. */

import type {
  EventAnswer,
  ManualPage,
  PackedTimeline,
  RangeAnswer,
  ReportAnswer,
  RunsAnswer,
  SearchAnswer,
  Span,
} from "../types";
import { unpacked } from "./packed";
import {
  type DataSource,
  type Detail,
  type EventRequest,
  NotReady,
  type RangeRequest,
  type Reason,
  type RunsWish,
  type SearchRequest,
  type TimelineRequest,
} from "./source";

const PIXELS_MOST = 10_000; // the back end refuses longer ones

export class HttpSource implements DataSource {
  readonly isLive = true;

  /** TensorBoard gives the page a <base>, so that a path prefix needs no care here. */
  constructor(private readonly base: string) {}

  runs(wish?: RunsWish, reason?: Reason): Promise<RunsAnswer> {
    const named = (wish?.names ?? []).map((name) => ["run", name]);
    return this.get("runs", [...named, ...flags({ all: wish?.all, fresh: reason?.fresh })]);
  }

  report(run: string, reason?: Reason): Promise<ReportAnswer> {
    return this.get("report", [["run", run], ...flags({ ...reason })]);
  }

  async timeline(request: TimelineRequest, signal?: AbortSignal): Promise<Detail> {
    const { run, host, start_ps, end_ps, pixels, opened } = request;
    const query = [
      ...Object.entries({ run, ...hostQuery(host), ...spanQuery(request) }),
      ["pixels", String(Math.min(Math.ceil(pixels), PIXELS_MOST))],
      ...(opened ?? []).map((lane) => ["open", lane]),
    ];
    const answer = await this.get<PackedTimeline | { state: string }>("timeline", query, signal);
    if ("state" in answer) throw new NotReady("The timeline is still being prepared.");
    return { answer: unpacked(answer), psPerPixel: (end_ps - start_ps) / pixels };
  }

  event(request: EventRequest, signal?: AbortSignal): Promise<EventAnswer> {
    const { run, host, lane, row } = request;
    const query = { run, ...hostQuery(host), lane, row: String(row), ...spanQuery(request) };
    return this.get("event", query, signal);
  }

  range(request: RangeRequest, signal?: AbortSignal): Promise<RangeAnswer> {
    const { run, host } = request;
    return this.get("range", { run, ...hostQuery(host), ...spanQuery(request) }, signal);
  }

  search({ run, host, text }: SearchRequest, signal?: AbortSignal): Promise<SearchAnswer> {
    return this.get("search", { run, ...hostQuery(host), text }, signal);
  }

  manual(id: string): Promise<ManualPage> {
    return this.get("manual", { id });
  }

  private async get<Answer>(
    route: string,
    query: Record<string, string> | string[][],
    signal?: AbortSignal,
  ): Promise<Answer> {
    const url = new URL(route, this.base);
    url.search = new URLSearchParams(query).toString();
    let response: Response;
    try {
      response = await fetch(url, signal ? { signal } : {});
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Error("TensorBoard is not responding. Is it still running?");
    }
    const answer: unknown = await response.json().catch(() => null);
    if (!response.ok || answer === null) throw new Error(reason(answer, response));
    return answer as Answer;
  }
}

/** The options that are set, as names without a value. */
function flags(all: Record<string, boolean | undefined>): string[][] {
  return Object.entries(all).flatMap(([name, isSet]) => (isSet ? [[name, ""]] : []));
}

/** A host that is not named is the one that trains. */
function hostQuery(host: string | null): Record<string, string> {
  return host === null ? {} : { host };
}

function spanQuery({ start_ps, end_ps }: Span): Record<string, string> {
  return { start_ps: String(Math.floor(start_ps)), end_ps: String(Math.ceil(end_ps)) };
}

function reason(answer: unknown, response: Response): string {
  const given = (answer as { error?: unknown } | null)?.error;
  return typeof given === "string" ? given : `TensorBoard answered with status ${response.status}.`;
}
