/** All runs with their verdicts; the worst can be sorted to the top. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { linkTo, onlyFromLink, runsWith } from "../filters";
import { counted, seconds } from "../format";
import {
  PAGE_ROWS,
  type SortKey,
  firstEpoch,
  hasUnread,
  inShort,
  pageOf,
  readCount,
  sortedRuns,
  unreadNames,
} from "../runs";
import { liveInShort } from "../live";
import { STATE_WORDS, STATUS_WORDS } from "../words";
import { BUCKETS } from "../palette";
import type { RunSummary } from "../types";
import { ProgressBar, Section, StatusBadge } from "../ui/parts";
import { Candidates, Legend, StackedBar } from "../ui/stacked_bar";
import { useRunName } from "../ui/run_name";
import { Pager } from "./pager";
import { RunFilters } from "./run_filters";

const COLUMNS: [SortKey, string][] = [
  ["run", "Run"],
  ["status", "Verdict"],
  ["duration", "First epoch"],
  ["later", "Later epochs"],
  ["gain", "Could be saved"],
];

export interface Wishes {
  /** These are on the screen and have not been read. */
  onUnread: (names: string[]) => void;
  onReadAll: () => void;
}

interface Props extends Wishes {
  title?: string;
  runs: RunSummary[];
  /** Which of them are listed, as in a link. */
  only: string | null;
  onOnly: (only: string | null) => void;
  onRun: (run: string) => void;
}

export function RunsTable({
  title = "All runs",
  runs,
  only: link,
  onOnly,
  onRun,
  ...wishes
}: Props) {
  const { onUnread, onReadAll } = wishes;
  const only = onlyFromLink(link);
  const areMany = runs.length > PAGE_ROWS;
  // In a large log directory, most runs are not read: there is no verdict yet to sort them by.
  const [key, setKey] = useState<SortKey>(() => (areMany && hasUnread(runs) ? "run" : "status"));
  const [isReversed, setReversed] = useState(false);
  const [pageNumber, setPageNumber] = useState(0);
  const sortBy = (wanted: SortKey) => {
    setReversed(wanted === key && !isReversed);
    setKey(wanted);
    setPageNumber(0);
  };
  const inOrder = useMemo(
    () => sortedRuns(runsWith(runs, only), key, isReversed),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `only` is made from `link`
    [runs, link, key, isReversed],
  );
  const page = pageOf(inOrder, pageNumber);
  const unread = unreadNames(page.rows);
  // eslint-disable-next-line react-hooks/exhaustive-deps -- the names count, not the list that holds them
  useEffect(() => onUnread(unread), [unread.join("\n")]);
  const used = useMemo(
    () => BUCKETS.filter((bucket) => runs.some((run) => (run.buckets_ps?.[bucket] ?? 0) > 0)),
    [runs],
  );
  return (
    <Section id="runs" title={title} aside={<Legend buckets={used} />}>
      {runs.length > 1 && (
        <RunFilters
          {...{ runs, only, left: inOrder.length, columns: COLUMNS, sortKey: key }}
          onOnly={(wanted) => {
            setPageNumber(0);
            onOnly(linkTo(wanted));
          }}
          onSort={(wanted) => wanted !== key && sortBy(wanted)}
        />
      )}
      {areMany && (
        <div class="runs-toolbar">
          <Pager {...page} total={inOrder.length} onPage={setPageNumber} />
          <span class="spacer" />
          <ReadAll runs={runs} onReadAll={onReadAll} />
        </div>
      )}
      <div class="scrolling" tabIndex={0} role="region" aria-label="Runs">
        <table class="runs-table card-rows">
          <thead>
            <tr>
              {COLUMNS.map(([column, title]) => (
                <th
                  scope="col"
                  class={`column-${column}`}
                  aria-sort={column !== key ? "none" : isReversed ? "descending" : "ascending"}
                >
                  <button type="button" class="plain" onClick={() => sortBy(column)}>
                    {title}
                    <span aria-hidden="true" class="sort-sign">
                      {column !== key ? "" : isReversed ? "▲" : "▼"}
                    </span>
                  </button>
                </th>
              ))}
              <th scope="col" class="column-bar">
                Where the time went
              </th>
            </tr>
          </thead>
          <tbody>
            {page.rows.map((run) => (
              <RunRow key={run.run} run={run} onRun={onRun} />
            ))}
          </tbody>
        </table>
      </div>
      {page.rows.length === 0 && <p class="no-match faint">No run matches.</p>}
      {page.rows.length > LONG_PAGE && (
        <Pager {...page} total={inOrder.length} onPage={setPageNumber} />
      )}
    </Section>
  );
}

const LONG_PAGE = 20; // rows after which the pager on top is out of sight

/** If there are many runs, only those on the screen are analyzed; sorting and sums need all. */
export function ReadAll({ runs, onReadAll }: { runs: RunSummary[]; onReadAll: () => void }) {
  const read = readCount(runs);
  if (read === runs.length) return null;
  return (
    <>
      <span class="faint" role="status">
        {read.toLocaleString("en")} of {counted(runs.length, "run")} analyzed
      </span>
      {hasUnread(runs) && (
        <button type="button" onClick={onReadAll}>
          Analyze all
        </button>
      )}
    </>
  );
}

function RunRow({ run, onRun }: { run: RunSummary; onRun: (run: string) => void }) {
  const best = run.findings?.[0];
  const name = useRunName();
  return (
    <tr onClick={() => onRun(run.run)}>
      <th scope="row">
        <button type="button" class="link" onClick={() => onRun(run.run)}>
          {name(run.run)}
        </button>
        {run.live && (
          <span class="run-sentence">
            <strong class="live-sign">Running</strong>: {liveInShort(run.live)}
          </span>
        )}
        {run.state === "ready" && <span class="run-sentence faint">{inShort(run)}</span>}
        {run.changes[0] && (
          <span class="run-sentence faint">
            Was “{STATUS_WORDS[run.changes[0].status]}”: {run.changes[0].why}
          </span>
        )}
      </th>
      {run.state === "ready" ? (
        <>
          <td class="column-status">
            {run.status && <StatusBadge status={run.status} />}
            <Candidates buckets={run.candidates ?? []} />
          </td>
          <td class="figures" data-title="First epoch">
            {firstEpoch(run)}
          </td>
          <td class="figures" data-title="Later epochs">
            {run.later_epoch_ps ? seconds(run.later_epoch_ps) : "–"}
          </td>
          <td class="figures" data-title="Could be saved">
            {best?.gain_ps?.high ? `up to ${seconds(best.gain_ps.high)}` : "–"}
          </td>
          <td class="column-bar">
            {run.buckets_ps && (
              <StackedBar times={run.buckets_ps} isEstimated={run.estimated === true} />
            )}
            {run.estimated && <span class="estimated-mark faint">estimated</span>}
          </td>
        </>
      ) : (
        <td colSpan={5} class="unready">
          <Unready run={run} />
        </td>
      )}
    </tr>
  );
}

function Unready({ run: { state, error, progress } }: { run: RunSummary }) {
  if (state === "failed") return <span class="failed">{error ?? STATE_WORDS.failed}</span>;
  if (state === "running") return <ProgressBar progress={progress} />;
  return <span class="faint">{STATE_WORDS[state]}</span>;
}
