/** The data of the one-file report: only what was stored. */

import type {
  EmbeddedData,
  EventAnswer,
  Hit,
  ManualPage,
  RangeAnswer,
  ReportAnswer,
  RunsAnswer,
  SearchAnswer,
  TimelineAnswer,
} from "../types";
import { bestFor } from "../timeline/answers";
import { unpacked } from "./packed";
import type {
  DataSource,
  Detail,
  EventRequest,
  RangeRequest,
  SearchRequest,
  TimelineRequest,
} from "./source";
import { storedEvent, storedRange } from "./stored_sums";

const HITS_MOST = 50;
const STORED_PIXELS = 4000; // for a stored timeline that does not say

export class EmbeddedSource implements DataSource {
  readonly isLive = false;

  /** The timelines of runs that were looked at. */
  private readonly unpacked = new Map<string, TimelineAnswer[]>();

  constructor(private readonly data: EmbeddedData) {}

  get written(): string {
    return this.data.written;
  }

  async runs(): Promise<RunsAnswer> {
    return this.data.runs;
  }

  async report(run: string): Promise<ReportAnswer> {
    const isListed = this.data.runs.runs.some((listed) => listed.run === run);
    const why = isListed
      ? `This file contains only the costliest runs in full, and ${run} is not one of them. ` +
        "To get a file for this run, use stall-analyze --run."
      : `There is no run ${run} in this report.`;
    return this.data.reports[run] ?? missing(why);
  }

  async timeline(request: TimelineRequest): Promise<Detail> {
    const stored = this.stored(request).map((answer) => ({
      answer,
      psPerPixel: (answer.end_ps - answer.start_ps) / (answer.pixels ?? STORED_PIXELS),
    }));
    return bestFor(stored, request) ?? missing("This file does not contain this timeline.");
  }

  async event(request: EventRequest): Promise<EventAnswer> {
    const { answer } = await this.timeline({ ...request, pixels: 1 });
    return (
      storedEvent(answer, request) ??
      missing("This report contains no further details about this event.")
    );
  }

  async range(request: RangeRequest): Promise<RangeAnswer> {
    const { answer } = await this.timeline({ ...request, pixels: 1 });
    return storedRange(answer, request);
  }

  async search({ run, host, text }: SearchRequest): Promise<SearchAnswer> {
    const hits = new Map<string, Hit>(); // the stored timelines overlap
    for (const timeline of this.stored({ run, host })) {
      for (const hit of hitsIn(timeline, text)) {
        hits.set(`${hit.lane} ${hit.start_ps} ${hit.name}`, hit);
      }
    }
    const inOrder = [...hits.values()].sort((a, b) => a.start_ps - b.start_ps);
    return { hits: inOrder.slice(0, HITS_MOST), total: inOrder.length };
  }

  /** The timelines of one host; the first one represents the run. */
  private stored({ run, host }: { run: string; host: string | null }): TimelineAnswer[] {
    const timelines = this.unpacked.get(run) ?? (this.data.timelines[run] ?? []).map(unpacked);
    this.unpacked.set(run, timelines);
    return timelines.filter((timeline) => timeline.host === (host ?? timelines[0]?.host));
  }

  async manual(id: string): Promise<ManualPage> {
    return this.data.manuals[id] ?? missing(`There is no manual page ${id} in this report.`);
  }
}

function* hitsIn(timeline: TimelineAnswer, text: string): Iterable<Hit> {
  const wanted = text.toLowerCase();
  const matching = new Set(
    timeline.names.flatMap((name, index) => (name.toLowerCase().includes(wanted) ? [index] : [])),
  );
  for (const lane of timeline.lanes) {
    for (const [start_ps, end_ps, name, row] of lane.items) {
      if (matching.has(name)) {
        yield { name: timeline.names[name] ?? "", lane: lane.id, row, start_ps, end_ps };
      }
    }
  }
}

function missing(text: string): never {
  throw new Error(text);
}
