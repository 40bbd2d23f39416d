/** Which two runs to compare, and their reports. */

import { useState } from "preact/hooks";
import type { DataSource } from "../data/source";
import { ELSEWHERE, type Place } from "../links";
import type { RunSummary } from "../types";
import { useReport } from "../use_data";
import { Compare } from "./compare";
import { RunsTable, type Wishes } from "./runs_table";
import { WhenReady } from "./states";

interface Props {
  source: DataSource;
  runs: RunSummary[];
  run: string;
  other: string | null;
  reloads: number;
  move: (change: Partial<Place>) => void;
  wishes: Wishes;
}

export function ComparePage({ source, runs, run, other, reloads, move, wishes }: Props) {
  const before = useReport(source, run, reloads);
  const after = useReport(source, other, reloads);
  const [only, setOnly] = useState<string | null>(null);
  if (other === null) {
    return (
      <RunsTable
        title={`Compare ${run} with …`}
        runs={runs.filter((one) => one.run !== run)}
        {...{ only, onOnly: setOnly }}
        onRun={(name) => move({ other: name })}
        {...wishes}
      />
    );
  }
  return (
    <WhenReady run={run} loaded={before}>
      {({ report }) => (
        <WhenReady run={other} loaded={after}>
          {({ report: otherReport }) => (
            <Compare
              before={{ run, report }}
              after={{ run: other, report: otherReport }}
              onSwap={() => move({ run: other, other: run })}
              onStep={(of, { start_ps, end_ps }) => {
                const range = { start_ps, end_ps };
                move({ ...ELSEWHERE, view: "run", run: of, other: null, range });
              }}
            />
          )}
        </WhenReady>
      )}
    </WhenReady>
  );
}
