/** Above the lanes: what is shown, stepping through the evidence, search, zoom. */

import { useEffect, useState } from "preact/hooks";
import type { DataSource } from "../data/source";
import { type Focus, focusOnHit } from "../focus";
import { counted, cut, seconds, shortened } from "../format";
import type { Lane, Ps, SearchAnswer, Span } from "../types";

interface Props {
  source: DataSource;
  run: string;
  host: string | null;
  lanes: readonly Lane[];
  view: Span;
  isWhole: boolean;
  /** When the clock that is shown begins. */
  originPs: Ps;
  /** Null if there is no other clock. */
  clock: { isTrace: boolean; onChange: (isTrace: boolean) => void } | null;
  focus: Focus | null;
  setFocus: (focus: Focus | null) => void;
  onZoom: (factor: number) => void;
  onFit: () => void;
}

export function Toolbar(props: Props) {
  const { view, isWhole, originPs, clock, focus, setFocus, onZoom, onFit } = props;
  const length = seconds(view.end_ps - view.start_ps);
  return (
    <div class="timeline-toolbar">
      <span class="timeline-range" aria-live="polite">
        {isWhole
          ? `Whole window, ${length}`
          : `${length} from ${seconds(Math.max(0, view.start_ps - originPs))}`}
      </span>
      {focus && <FocusWalk focus={focus} setFocus={setFocus} />}
      <span class="spacer" />
      {clock && (
        <label class="clock" title="Where times are counted from">
          <input
            type="checkbox"
            checked={clock.isTrace}
            onChange={(event) => clock.onChange(event.currentTarget.checked)}
          />{" "}
          trace viewer's clock
        </label>
      )}
      <Search {...props} />
      <span class="button-group">
        <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => onZoom(0.5)}>
          +
        </button>
        <button type="button" aria-label="Zoom out" title="Zoom out (−)" onClick={() => onZoom(2)}>
          −
        </button>
        <button type="button" title="Show the whole window (0)" disabled={isWhole} onClick={onFit}>
          Fit
        </button>
      </span>
    </div>
  );
}

const TITLE_MOST = 60;

function FocusWalk({ focus, setFocus }: { focus: Focus; setFocus: (focus: Focus | null) => void }) {
  const count = focus.spans.length;
  const go = (by: number) => setFocus(stepped(focus, by));
  return (
    <span class="focus-walk">
      <span class="focus-title" title={shortened(focus.title, 400)}>
        {cut(focus.title, TITLE_MOST)}
      </span>
      {count > 1 && (
        <>
          <button type="button" aria-label="Previous stretch (p)" onClick={() => go(-1)}>
            ‹
          </button>
          <span class="figures">
            {focus.at === null ? `all ${count}` : `${focus.at + 1} of ${count}`}
          </span>
          <button type="button" aria-label="Next stretch (n)" onClick={() => go(1)}>
            ›
          </button>
        </>
      )}
      <button type="button" aria-label="Clear the highlight (Esc)" onClick={() => setFocus(null)}>
        ✕
      </button>
    </span>
  );
}

/** The next stretch of the focus; after the last comes the first. */
export function stepped(focus: Focus, by: number): Focus {
  const count = focus.spans.length;
  const from = focus.at ?? (by > 0 ? -1 : count);
  return { ...focus, at: (from + by + count) % count };
}

const SEARCH_AFTER_MS = 200;
const HITS_SHOWN = 12;

function Search({ source, run, host, lanes, setFocus }: Props) {
  const [text, setText] = useState("");
  const [answer, setAnswer] = useState<SearchAnswer | null>(null);
  const [error, setError] = useState<string | null>(null);

  useEffect(() => {
    setAnswer(null);
    setError(null);
    if (!text.trim()) return;
    const request = new AbortController();
    const timer = setTimeout(() => {
      const wanted = { run, host, text: text.trim() };
      source.search(wanted, request.signal).then(setAnswer, (failure: Error) => {
        if (!request.signal.aborted) setError(failure.message);
      });
    }, SEARCH_AFTER_MS);
    return () => {
      clearTimeout(timer);
      request.abort();
    };
  }, [text, run, host, source]);

  const laneTitle = (id: string) => lanes.find((lane) => lane.id === id)?.title ?? id;
  return (
    <div
      class="search"
      onKeyDown={(event) => {
        if (event.key === "Escape") setText("");
      }}
    >
      <input
        type="search"
        placeholder="Find an event"
        aria-label="Find an event by name"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {(answer || error) && (
        <div class="search-hits" role="region" aria-label="Search results">
          <p class="faint">{error ?? summary(answer!)}</p>
          {answer?.hits.slice(0, HITS_SHOWN).map((hit) => (
            <button
              type="button"
              onClick={() => {
                setFocus(focusOnHit(hit));
                setText("");
              }}
            >
              <span class="hit-name">{shortened(hit.name, 80)}</span>
              <span class="faint figures">
                {cut(laneTitle(hit.lane), 28)} · {seconds(hit.end_ps - hit.start_ps)} at{" "}
                {seconds(hit.start_ps)}
              </span>
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

function summary({ total, hits }: SearchAnswer): string {
  if (total === 0) return "No event has this text in its name.";
  const shown = Math.min(hits.length, HITS_SHOWN);
  return shown < total
    ? `${counted(total, "event")}, the first ${shown}:`
    : counted(total, "event");
}
