/** The chosen event in full: what, where, when, its arguments, and where training time went during it. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { DataSource } from "../data/source";
import { counted, figure, percent, seconds, shortened } from "../format";
import { rootUrl } from "../root";
import { traceViewerUrl } from "../trace_viewer";
import type { EventAnswer, Ps, Report, Trace } from "../types";
import { CodeLineOf } from "../views/code_lines";
import { CauseList } from "./cause_list";
import type { Chosen } from "./chosen";
import { traceAt } from "./clock";
import { lineBelow, lineOfCause } from "./users_line";

const NAME_MOST = 300;

interface Props {
  source: DataSource;
  run: string;
  host: string | null;
  report: Report;
  traces: readonly Trace[];
  chosen: Chosen;
  /** Of its lane. */
  title: string;
  windowPs: Ps;
  onZoom: () => void;
  onClose: () => void;
}

export function EventPanel(props: Props) {
  const { source, run, host, chosen, onZoom, onClose } = props;
  const { answer, error } = useAnswer(
    (signal) => source.event({ run, host, ...chosen }, signal),
    [run, host, chosen.lane, chosen.row, chosen.start_ps, chosen.end_ps],
  );
  const panel = useInSight(answer !== null);
  return (
    <aside class="event-panel" aria-label="The chosen event" aria-live="polite" ref={panel}>
      <header>
        <h3>{answer ? shortened(answer.name, NAME_MOST) : (error ?? "…")}</h3>
        <span class="button-group">
          <button type="button" title="Zoom to this event (Enter)" onClick={onZoom}>
            Zoom to event
          </button>
          <button type="button" aria-label="Close (Esc)" onClick={onClose}>
            ✕
          </button>
        </span>
      </header>
      {answer && <EventFacts {...props} event={answer} />}
    </aside>
  );
}

function EventFacts(props: Props & { event: EventAnswer }) {
  const { event, title, report, windowPs, host, traces } = props;
  const length = event.end_ps - event.start_ps;
  const onHost = host ?? report.host;
  const trace = traceAt(report.traces, onHost, event.start_ps);
  const evidence = { ...event, host: onHost ?? "", line: "", label: event.name };
  const url = traces.length > 0 ? traceViewerUrl(rootUrl(), evidence, trace ? [trace] : []) : null;
  return (
    <div class="event-columns">
      <dl class="worth">
        <dt>Where</dt>
        <dd>{title}</dd>
        <dt>Starts</dt>
        <dd>
          {seconds(event.start_ps)}{" "}
          {trace && (
            <span class="faint">
              ({seconds(Math.max(0, event.start_ps - trace.start_ps))} in the trace viewer)
            </span>
          )}
        </dd>
        <dt>Takes</dt>
        <dd>
          {seconds(length)} <span class="faint">({percent(length, windowPs)})</span>
        </dd>
        {event.count > 1 && (
          <>
            <dt>Nearby</dt>
            <dd>{counted(event.count - 1, "shorter event")}; zoom in to see more</dd>
          </>
        )}
        {event.arguments.map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd class="argument">{typeof value === "number" ? figure(value, "", 9) : value}</dd>
          </>
        ))}
        {url && (
          <>
            <dt>Also</dt>
            <dd>
              <a href={url} target="_blank" rel="noopener">
                in the trace viewer ↗
              </a>
            </dd>
          </>
        )}
      </dl>
      <div class="event-around">
        <h4>Where training time went during this event</h4>
        <CauseList causes={event.causes} most={4} />
        <UsersLine event={event} report={report} />
        {event.around.length > 0 && (
          <>
            <h4>Part of</h4>
            <p class="event-path">{event.around.map((name) => shortened(name, 60)).join(" › ")}</p>
          </>
        )}
        {event.inside.length > 0 && (
          <>
            <h4>Contains</h4>
            <ul>
              {event.inside.slice(0, 6).map(([name, count, ps]) => (
                <li key={name}>
                  <span class="figures">{seconds(ps)}</span> {shortened(name, 70)}
                  {count > 1 && <span class="faint"> × {count.toLocaleString("en")}</span>}
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
    </div>
  );
}

function UsersLine({ event, report }: { event: EventAnswer; report: Report }) {
  const traced = lineBelow(event);
  const line = lineOfCause(event, report.lines);
  if (!traced && !line) return null;
  return (
    <>
      <h4>Your code</h4>
      {traced ? <code>{traced}</code> : <CodeLineOf line={line!} />}
    </>
  );
}

/** Scrolls to what has arrived; if it is already visible, nothing moves. */
export function useInSight(isThere: boolean) {
  const element = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    if (isThere) element.current?.scrollIntoView({ block: "nearest" });
  }, [isThere]);
  return element;
}

/** Requested again whenever its subject changes; the old answer is dropped at once. */
export function useAnswer<Answer>(
  ask: (signal: AbortSignal) => Promise<Answer>,
  about: readonly unknown[],
): { answer: Answer | null; error: string | null } {
  const [state, setState] = useState<{ answer: Answer | null; error: string | null }>(NOTHING);
  useEffect(() => {
    const request = new AbortController();
    setState(NOTHING);
    ask(request.signal).then(
      (answer) => !request.signal.aborted && setState({ answer, error: null }),
      (failure: Error) =>
        !request.signal.aborted && setState({ answer: null, error: failure.message }),
    );
    return () => request.abort();
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the caller says what the question is about
  }, about);
  return state;
}

const NOTHING = { answer: null, error: null };
