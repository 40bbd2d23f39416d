/** Which run is shown, alone or compared with another one. */

import { counted } from "../format";
import type { Place, View } from "../links";
import { NOWHERE } from "../links";
import { goTo } from "../ui/parts";
import { RunPicker } from "../ui/run_picker";
import type { RunSummary } from "../types";

interface Props {
  runs: RunSummary[];
  place: Place;
  move: (change: Partial<Place>) => void;
}

export function TopBar({ runs, place, move }: Props) {
  const tab = (view: View, title: string, change: Partial<Place>) => (
    <button
      type="button"
      class="tab"
      aria-current={place.view === view ? "page" : undefined}
      onClick={() => move({ view, ...change })}
    >
      {title}
    </button>
  );
  const choose = (name: string) =>
    move({ ...NOWHERE, view: place.view, run: name, other: place.other });
  const hasSeveral = runs.length > 1;
  const isAboutAll = place.view === "runs" || place.view === "fleet";
  const isReady = runs.some(({ run, state }) => run === place.run && state === "ready");
  return (
    <nav class="top-bar" aria-label="Runs">
      {hasSeveral && (
        <>
          {tab("runs", `${isAboutAll ? "" : "← "}All ${counted(runs.length, "run")}`, {
            only: null,
          })}
          {tab("fleet", "Fleet", {})}
        </>
      )}
      {place.run !== null && !isAboutAll && (
        <>
          <RunPicker label="Run" {...{ runs, value: place.run, onChange: choose }} />
          {hasSeveral && place.view === "run" && tab("compare", "Compare …", { other: null })}
          {place.view === "compare" && place.other !== null && (
            <>
              <span class="faint">against</span>
              <RunPicker
                label="Compared run"
                {...{ runs, value: place.other, onChange: (other) => move({ other }) }}
              />
            </>
          )}
          {place.view === "compare" && tab("run", "Stop comparing", { other: null })}
        </>
      )}
      <span class="spacer" />
      {place.view === "run" && isReady && <SectionLinks />}
      {place.view !== "runs" && (
        <button type="button" onClick={() => window.print()}>
          Print
        </button>
      )}
    </nav>
  );
}

const SECTIONS: [string, string][] = [
  ["verdict", "Verdict"],
  ["time-spent", "Time"],
  ["changes", "Changes"],
  ["timeline", "Timeline"],
];

function SectionLinks() {
  return (
    <span class="section-links">
      {SECTIONS.map(([id, title]) => (
        <button key={id} type="button" class="link" onClick={() => goTo(id)}>
          {title}
        </button>
      ))}
    </span>
  );
}
