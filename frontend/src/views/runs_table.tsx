/** All runs with their verdicts; what is worst can be sorted to the top. */

import { useState } from "preact/hooks";
import { seconds } from "../format";
import { type SortKey, sortedRuns } from "../runs";
import { STATE_WORDS } from "../words";
import { BUCKETS, type RunSummary } from "../types";
import { ProgressBar, Section, StatusBadge } from "../ui/parts";
import { Legend, StackedBar } from "../ui/stacked_bar";

const COLUMNS: [SortKey, string][] = [
  ["run", "Run"],
  ["status", "Verdict"],
  ["duration", "First epoch"],
  ["later", "Later epochs"],
  ["gain", "To be won"],
];

interface Props {
  title?: string;
  runs: RunSummary[];
  onRun: (run: string) => void;
}

export function RunsTable({ title = "All runs", runs, onRun }: Props) {
  const [key, setKey] = useState<SortKey>("gain");
  const [isReversed, setReversed] = useState(false);
  const sortBy = (wanted: SortKey) => {
    setReversed(wanted === key && !isReversed);
    setKey(wanted);
  };
  const used = BUCKETS.filter((bucket) => runs.some((run) => (run.buckets_ps?.[bucket] ?? 0) > 0));
  return (
    <Section id="runs" title={title} aside={<Legend buckets={used} />}>
      <div class="scrolling" tabIndex={0} role="region" aria-label="Runs">
        <table class="runs-table">
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
            {sortedRuns(runs, key, isReversed).map((run) => (
              <RunRow key={run.run} run={run} onRun={onRun} />
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function RunRow({ run, onRun }: { run: RunSummary; onRun: (run: string) => void }) {
  const best = run.findings?.[0];
  return (
    <tr onClick={() => onRun(run.run)}>
      <th scope="row">
        <button type="button" class="link" onClick={() => onRun(run.run)}>
          {run.run}
        </button>
        {run.state === "ready" && (
          <span class="run-sentence faint">{best?.title ?? run.sentence}</span>
        )}
      </th>
      {run.state === "ready" ? (
        <>
          <td>{run.status && <StatusBadge status={run.status} />}</td>
          <td class="figures">{run.duration_ps ? seconds(run.duration_ps) : "–"}</td>
          <td class="figures">{run.later_epoch_ps ? seconds(run.later_epoch_ps) : "–"}</td>
          <td class="figures">
            {best?.gain_ps?.high ? `up to ${seconds(best.gain_ps.high)}` : "–"}
          </td>
          <td class="column-bar">{run.buckets_ps && <StackedBar times={run.buckets_ps} />}</td>
        </>
      ) : (
        <td colSpan={5}>
          {run.state === "failed" ? (
            <span class="failed">{run.error ?? STATE_WORDS.failed}</span>
          ) : (
            <ProgressBar progress={run.progress} />
          )}
        </td>
      )}
    </tr>
  );
}
