/** The list of runs and the reports, kept fresh while the page is open. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { DataSource, Reason, RunsWish } from "./data/source";
import { watchReload } from "./host";
import { goesOn } from "./live";
import { isBusy, isUnfinished } from "./runs";
import type { ReportAnswer, RunSummary, RunsAnswer } from "./types";

// While an analysis runs: soon at first, because a small run is read in a moment.
const FIRST_POLL_MS = 40;
const POLL_GROWTH = 1.5;
const POLL_MS = 700;
const REST = 5; // times the duration of an answer, so that TensorBoard is not kept busy
const RETRY_MS = 5000; // while TensorBoard does not answer
const LIVE_MS = 2000; // while a run is in progress: its capture writes each second
const GOING_ON_MS = 5000; // for its reports; the back end decides how often it is read again
const IDLE_MS = 15_000; // a new run may begin

export interface Loaded<Answer> {
  answer: Answer | null;
  error: string | null;
  reload: () => void;
}

interface Question<Answer> {
  /** Null while there is nothing to ask. */
  ask: ((reason: Reason) => Promise<Answer>) | null;
  isPending: (answer: Answer) => boolean;
  /** When to ask again even if nothing is pending; null for never. */
  restMs: (answer: Answer) => number | null;
  /** What it is about: an answer for another key is of no use. */
  key: string;
  /** The same question with different parameters. */
  words?: string;
  reloads: number;
  isLive: boolean;
}

/**
 * Asks once, again as long as `isPending` says so and then from time to time while somebody looks,
 * and whenever TensorBoard has read its logs.
 */
function usePolled<Answer>(question: Question<Answer>): Loaded<Answer> {
  const { ask, isPending, restMs, key, words, reloads, isLive } = question;
  const [state, setState] = useState<{ key: string; answer: Answer | null; error: string | null }>({
    key,
    answer: null,
    error: null,
  });
  const [retries, setRetries] = useState(0);
  const seen = useRef({ retries, reloads });

  useEffect(() => {
    if (!ask) return;
    let isCurrent = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const poll = async (count: number) => {
      const { retries: oldRetries, reloads: oldReloads } = seen.current;
      const reason = { again: oldRetries !== retries, fresh: oldReloads !== reloads };
      seen.current = { retries, reloads };
      let waitMs: number | null = null;
      const began = performance.now();
      try {
        const answer = await ask(reason);
        if (!isCurrent) return;
        setState({ key, answer, error: null });
        const tookMs = performance.now() - began;
        waitMs = isPending(answer) ? pollMs(count) : restMs(answer);
        if (waitMs !== null) waitMs = Math.max(waitMs, REST * tookMs);
      } catch (failure) {
        if (!isCurrent) return;
        setState((old) => ({
          key,
          answer: old.key === key ? old.answer : null,
          error: (failure as Error).message,
        }));
        waitMs = RETRY_MS;
      }
      if (waitMs !== null && isLive) askLater(waitMs, count + 1);
    };
    const askLater = (waitMs: number, count: number) => {
      timer = setTimeout(
        () => (document.hidden ? askLater(waitMs, count) : void poll(count)),
        waitMs,
      );
    };
    void poll(0);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `key` says what is asked for
  }, [key, words, reloads, retries]);

  const isFresh = state.key === key; // until then, the state belongs to another run
  return {
    answer: isFresh ? state.answer : null,
    error: isFresh ? state.error : null,
    reload: () => setRetries(retries + 1),
  };
}

function pollMs(count: number): number {
  return Math.min(POLL_MS, FIRST_POLL_MS * POLL_GROWTH ** count);
}

export function useRuns(
  source: DataSource,
  wish: RunsWish,
): Loaded<RunsAnswer> & { reloads: number } {
  const [reloads, setReloads] = useState(0);
  useEffect(() => watchReload(() => setReloads((count) => count + 1)), []);
  const loaded = usePolled({
    ask: (reason) => source.runs(wish, reason),
    isPending: ({ runs }) => isBusy(runs),
    restMs: ({ runs }) =>
      runs.some(({ live }) => live) ? LIVE_MS : runs.some(goesOn) ? GOING_ON_MS : IDLE_MS,
    key: "runs",
    words: JSON.stringify(wish),
    reloads,
    isLive: source.isLive,
  });
  return { ...loaded, reloads };
}

export function useReport(
  source: DataSource,
  run: string | null,
  reloads: number,
  /** From the list: if that says something new, so does the report. */
  summary?: RunSummary,
): Loaded<ReportAnswer> {
  const isGoingOn = summary !== undefined && goesOn(summary);
  return usePolled({
    ask: run === null ? null : (reason) => source.report(run, reason),
    isPending: (answer: ReportAnswer) =>
      isUnfinished(answer.state, answer.state === "failed" ? null : answer.progress),
    restMs: () => (isGoingOn ? GOING_ON_MS : null),
    key: run ?? "",
    words: `${isGoingOn} ${isGoingOn ? "" : summary?.sentence}`,
    reloads,
    isLive: source.isLive,
  });
}
