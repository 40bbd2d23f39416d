/** The list of runs and the reports, kept fresh while the page is open. */

import { useEffect, useState } from "preact/hooks";
import type { DataSource } from "./data/source";
import { watchReload } from "./host";
import { isBusy, isUnfinished } from "./runs";
import type { ReportAnswer, RunsAnswer } from "./types";

const POLL_MS = 700; // while an analysis runs
const RETRY_MS = 5000; // while TensorBoard does not answer

export interface Loaded<Answer> {
  answer: Answer | null;
  error: string | null;
  reload: () => void;
}

/** Asks once, again as long as `isPending` says so, and whenever `trigger` changes. */
function usePolled<Answer>(
  ask: (() => Promise<Answer>) | null,
  isPending: (answer: Answer) => boolean,
  key: string,
  trigger: number,
  isLive: boolean,
): Loaded<Answer> {
  const [state, setState] = useState<{ key: string; answer: Answer | null; error: string | null }>({
    key,
    answer: null,
    error: null,
  });
  const [again, setAgain] = useState(0);

  useEffect(() => {
    if (!ask) return;
    let isCurrent = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const poll = async () => {
      let waitMs: number | null = null;
      try {
        const answer = await ask();
        if (!isCurrent) return;
        setState({ key, answer, error: null });
        if (isPending(answer)) waitMs = POLL_MS;
      } catch (failure) {
        if (!isCurrent) return;
        setState((old) => ({
          key,
          answer: old.key === key ? old.answer : null,
          error: (failure as Error).message,
        }));
        waitMs = RETRY_MS;
      }
      if (waitMs !== null && isLive) timer = setTimeout(() => void poll(), waitMs);
    };
    void poll();
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [key, trigger, again]);

  const isFresh = state.key === key; // until then the state is another run's
  return {
    answer: isFresh ? state.answer : null,
    error: isFresh ? state.error : null,
    reload: () => setAgain(again + 1),
  };
}

export function useRuns(source: DataSource): Loaded<RunsAnswer> & { reloads: number } {
  const [reloads, setReloads] = useState(0);
  useEffect(() => watchReload(() => setReloads((count) => count + 1)), []);
  const ask = () => source.runs();
  const loaded = usePolled(ask, ({ runs }) => isBusy(runs), "runs", reloads, source.isLive);
  return { ...loaded, reloads };
}

export function useReport(
  source: DataSource,
  run: string | null,
  reloads: number,
): Loaded<ReportAnswer> {
  const ask = run === null ? null : () => source.report(run);
  const isPending = (answer: ReportAnswer) =>
    isUnfinished(answer.state, answer.state === "failed" ? null : answer.progress);
  return usePolled(ask, isPending, run ?? "", reloads, source.isLive);
}
