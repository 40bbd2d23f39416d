/** The page: which run, which view, and the bar on top that chooses them. */

import { useLayoutEffect, useState } from "preact/hooks";
import type { DataSource, RunsWish } from "./data/source";
import { watchTheme } from "./host";
import { ELSEWHERE, type Place } from "./links";
import { firstRun } from "./runs";
import type { Note } from "./types";
import { Notes } from "./ui/parts";
import { LogdirContext, useRunName } from "./ui/run_name";
import { useRuns } from "./use_data";
import { usePlace } from "./use_place";
import { ComparePage } from "./views/compare_page";
import { FleetPage } from "./views/fleet";
import { RunPage } from "./views/run_page";
import { RunsTable } from "./views/runs_table";
import { Failed, NoRuns } from "./views/states";
import { TopBar } from "./views/top_bar";

const NOTES_ABOVE = 3; // notes about all runs; more would push the answer off the screen

export function App({ source }: { source: DataSource }) {
  const [isDark, setDark] = useState(false);
  useLayoutEffect(
    () =>
      watchTheme((dark) => {
        // First the style sheet, then the views: their canvases read its colors.
        document.documentElement.dataset["theme"] = dark ? "dark" : "light";
        setDark(dark);
      }),
    [],
  );

  const [place, move] = usePlace();
  const [wish, setWish] = useState<RunsWish>({ names: [], all: false });
  const { answer, error, reload, reloads } = useRuns(source, wish);
  if (!answer) {
    return error ? (
      <Failed title="The runs could not be listed" error={error} onRetry={reload} />
    ) : (
      <div class="state" role="status">
        <p class="faint">Looking for runs …</p>
      </div>
    );
  }
  const { runs, fleet, problems, capture, profile_plugin: hasTraceViewer } = answer;
  if (runs.length === 0) return <NoRuns {...answer} />;

  const run = place.run ?? firstRun(runs);
  const needsRun = place.view === "run" || place.view === "compare";
  const shown: Place = { ...place, run, view: needsRun && run === null ? "runs" : place.view };
  const open = (name: string) => move({ ...ELSEWHERE, run: name, view: "run" });
  const wishes = {
    onUnread: (names: string[]) => setWish((old) => ({ ...old, names })),
    onReadAll: () => setWish((old) => ({ ...old, all: true })),
  };
  return (
    <LogdirContext.Provider value={answer.logdir}>
      <TopBar runs={runs} place={shown} move={move} />
      <main>
        {source.written && (
          <p class="file-about faint">
            {answer.logdir ? (
              <>
                <code>{answer.logdir}</code>, analyzed
              </>
            ) : (
              "Analyzed"
            )}{" "}
            {source.written} with Stall {answer.version}
          </p>
        )}
        <PaperTitle place={shown} />
        <Notes notes={shown.view === "run" ? graver(problems) : problems} most={NOTES_ABOVE} />
        {shown.view === "runs" && (
          <RunsTable
            {...{ runs, only: shown.only, ...wishes }}
            onRun={open}
            onOnly={(only) => move({ only })}
          />
        )}
        {shown.view === "fleet" && (
          <FleetPage
            {...{ fleet, runs, onRun: open, onReadAll: wishes.onReadAll }}
            onOnly={(only) => move({ view: "runs", only })}
          />
        )}
        {shown.view === "run" && run !== null && (
          <RunPage
            key={run}
            {...{ source, run, place: shown, move, reloads, isDark, hasTraceViewer, capture }}
            summary={runs.find((one) => one.run === run)}
          />
        )}
        {shown.view === "compare" && run !== null && (
          <ComparePage {...{ source, runs, run, other: shown.other, reloads, move, wishes }} />
        )}
      </main>
    </LogdirContext.Provider>
  );
}

/** Above the answer about one run, show only what may be why it is not the right one. */
function graver(notes: readonly Note[]): Note[] {
  return notes.filter(({ level }) => level !== "info");
}

/** On paper, there is no bar on top that says what this is. */
function PaperTitle({ place: { view, run, other } }: { place: Place }) {
  const name = useRunName();
  if (view === "runs" || view === "fleet" || run === null) return null;
  return (
    <p class="paper-title">
      <strong>{name(run)}</strong>
      {view === "compare" && other !== null && (
        <>
          {" against "}
          <strong>{name(other)}</strong>
        </>
      )}
    </p>
  );
}
