/** The list of runs and the reports, kept fresh while the page is open. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { DataSource, Reason, RunsWish } from "./data/source";
import { watchReload } from "./host";
import { isBusy, isUnfinished } from "./runs";
import type { ReportAnswer, RunsAnswer } from "./types";

// While an analysis runs: soon at first, because a small run is read in a moment.
const FIRST_POLL_MS = 40;
const POLL_GROWTH = 1.5;
const POLL_MS = 700;
const REST = 5; // times what an answer took: a list of thousands must not keep TensorBoard busy
const RETRY_MS = 5000; // while TensorBoard does not answer

export interface Loaded<Answer> {
  answer: Answer | null;
  error: string | null;
  reload: () => void;
}

interface Question<Answer> {
  /** Null while there is nothing to ask. */
  ask: ((reason: Reason) => Promise<Answer>) | null;
  isPending: (answer: Answer) => boolean;
  /** What it is about: the answer of another key is of no use. */
  key: string;
  /** The same question with other words. */
  words?: string;
  reloads: number;
  isLive: boolean;
}

/** Asks once, again as long as `isPending` says so, and whenever TensorBoard has read its logs. */
function usePolled<Answer>(question: Question<Answer>): Loaded<Answer> {
  const { ask, isPending, key, words, reloads, isLive } = question;
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
        if (isPending(answer)) waitMs = Math.max(pollMs(count), REST * tookMs);
      } catch (failure) {
        if (!isCurrent) return;
        setState((old) => ({
          key,
          answer: old.key === key ? old.answer : null,
          error: (failure as Error).message,
        }));
        waitMs = RETRY_MS;
      }
      if (waitMs !== null && isLive) timer = setTimeout(() => void poll(count + 1), waitMs);
    };
    void poll(0);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [key, words, reloads, retries]);

  const isFresh = state.key === key; // until then the state is another run's
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
): Loaded<ReportAnswer> {
  return usePolled({
    ask: run === null ? null : (reason) => source.report(run, reason),
    isPending: (answer: ReportAnswer) =>
      isUnfinished(answer.state, answer.state === "failed" ? null : answer.progress),
    key: run ?? "",
    reloads,
    isLive: source.isLive,
  });
}
