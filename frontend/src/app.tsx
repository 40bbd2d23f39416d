/** The page: which run, which view, and the bar on top that chooses them. */

import { useLayoutEffect, useState } from "preact/hooks";
import type { DataSource } from "./data/source";
import { watchTheme } from "./host";
import { ELSEWHERE, type Place } from "./links";
import { firstRun } from "./runs";
import { Notes } from "./ui/parts";
import { useRuns } from "./use_data";
import { usePlace } from "./use_place";
import { ComparePage } from "./views/compare_page";
import { RunPage } from "./views/run_page";
import { RunsTable } from "./views/runs_table";
import { Failed, NoRuns } from "./views/states";
import { TopBar } from "./views/top_bar";

export function App({ source }: { source: DataSource }) {
  const [isDark, setDark] = useState(false);
  useLayoutEffect(
    () =>
      watchTheme((dark) => {
        // First the style sheet, then the views: their canvases read its colours.
        document.documentElement.dataset["theme"] = dark ? "dark" : "light";
        setDark(dark);
      }),
    [],
  );

  const [place, move] = usePlace();
  const { answer, error, reload, reloads } = useRuns(source);
  if (!answer) {
    return error ? (
      <Failed title="The runs could not be listed" error={error} onRetry={reload} />
    ) : (
      <div class="state" role="status">
        <p class="faint">Looking for runs …</p>
      </div>
    );
  }
  const { runs, problems, capture, profile_plugin: hasTraceViewer } = answer;
  if (runs.length === 0) return <NoRuns {...answer} />;

  const run = place.run ?? firstRun(runs);
  const shown: Place = run === null ? { ...place, view: "runs" } : { ...place, run };
  return (
    <>
      <TopBar runs={runs} place={shown} move={move} />
      <main>
        <Notes notes={problems} />
        {shown.view === "runs" && (
          <RunsTable runs={runs} onRun={(name) => move({ ...ELSEWHERE, run: name, view: "run" })} />
        )}
        {shown.view === "run" && run !== null && (
          <RunPage
            key={run}
            {...{ source, run, place: shown, move, reloads, isDark, hasTraceViewer, capture }}
          />
        )}
        {shown.view === "compare" && run !== null && (
          <ComparePage {...{ source, runs, run, other: shown.other, reloads, move }} />
        )}
      </main>
    </>
  );
}
