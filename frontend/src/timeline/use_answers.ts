/** Requests the timeline in as much detail as the screen can show, as the view moves. */

import { useEffect, useRef, useState } from "preact/hooks";
import { type DataSource, type Detail, NotReady } from "../data/source";
import type { Ps, Span } from "../types";
import { bestFor, isGoodEnough, kept, requestFor } from "./answers";

const SETTLED_MS = 120; // the wheel turns faster than anyone can read
const ASK_AGAIN_MS = 1000; // for what is being made
const LEAST_PIXELS = 1200; // for the first request, which also serves the minimap

export interface Answers {
  /** The whole window: for the minimap and the layout, which must not jump. */
  whole: Detail | null;
  best: Detail | null;
  error: string | null;
}

interface Shown {
  run: string;
  host: string | null;
  version: string;
  /** Lanes that are shown in all their depth. */
  opened: readonly string[];
}

export function useAnswers(
  source: DataSource,
  { run, host, version, opened }: Shown,
  windowPs: Ps,
  view: Span,
  width: number,
): Answers {
  const [details, setDetails] = useState<Detail[]>([]);
  const [error, setError] = useState<string | null>(null);
  const requested = useRef<AbortController | null>(null);

  const ask = async (span: Span, pixels: number, keep: (detail: Detail) => void) => {
    requested.current?.abort();
    const request = new AbortController();
    requested.current = request;
    try {
      const detail = await source.timeline({ run, host, ...span, pixels, opened }, request.signal);
      if (request.signal.aborted) return;
      setError(null);
      keep(detail);
    } catch (failure) {
      if (request.signal.aborted) return;
      setError((failure as Error).message);
      const askAgain = () => !request.signal.aborted && void ask(span, pixels, keep);
      if (failure instanceof NotReady) setTimeout(askAgain, ASK_AGAIN_MS);
    }
  };

  const isMeasured = width > 0;
  const key = JSON.stringify([run, host, version, windowPs]);
  const shownKey = useRef("");
  useEffect(() => {
    if (!isMeasured) return;
    // A lane that is opened stays as it is until its rows have arrived.
    if (shownKey.current !== key) setDetails([]);
    shownKey.current = key;
    const span = { start_ps: 0, end_ps: windowPs };
    void ask(span, Math.max(width, LEAST_PIXELS), (whole) => setDetails([whole]));
    return () => requested.current?.abort();
    // eslint-disable-next-line react-hooks/exhaustive-deps -- asks anew for another run or other rows; the width only sets the detail
  }, [source, key, opened.join("\n"), isMeasured]);

  const best = bestFor(details, view);
  const psPerPixel = (view.end_ps - view.start_ps) / Math.max(1, width);
  const isSatisfied = !details.length || isGoodEnough(best, psPerPixel);
  useEffect(() => {
    if (isSatisfied) return;
    const timer = setTimeout(() => {
      const span = requestFor(view, windowPs);
      const pixels = (span.end_ps - span.start_ps) / psPerPixel;
      void ask(span, pixels, (detail) => setDetails((all) => kept(all, detail)));
    }, SETTLED_MS);
    return () => clearTimeout(timer);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- asks when the view has come to rest
  }, [isSatisfied, view.start_ps, view.end_ps, width]);

  return { whole: details[0] ?? null, best, error };
}
