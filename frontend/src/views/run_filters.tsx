/** Chooses which runs are listed, and on a narrow screen, where there are no column titles, their order. */

import { FACETS, type Facet, type Only, choicesOf } from "../filters";
import { counted } from "../format";
import type { SortKey } from "../runs";
import type { RunSummary } from "../types";

const TITLES: Record<Facet, string> = {
  status: "Verdict",
  bucket: "Mostly",
  finding: "Finding",
  day: "Day",
};

interface Props {
  runs: RunSummary[];
  only: Only;
  onOnly: (only: Only) => void;
  /** How many runs the filters leave. */
  left: number;
  columns: readonly [SortKey, string][];
  sortKey: SortKey;
  onSort: (key: SortKey) => void;
}

export function RunFilters({ runs, only, onOnly, left, columns, sortKey, onSort }: Props) {
  const isFiltered = Object.keys(only).length > 0;
  const change = (name: keyof Only, value: string) => {
    const { [name]: _, ...others } = only;
    onOnly(value ? { ...others, [name]: value } : others);
  };
  return (
    <div class="run-filters" role="search" aria-label="Runs">
      <input
        type="search"
        placeholder="Name, verdict or finding"
        aria-label="Filter runs by text"
        value={only.text ?? ""}
        onInput={(event) => change("text", event.currentTarget.value)}
      />
      {FACETS.map((facet) => (
        <FacetChoice key={facet} {...{ runs, only, facet }} onValue={(v) => change(facet, v)} />
      ))}
      <label class="sort-choice">
        <span class="faint">Sort by </span>
        <select value={sortKey} onChange={(event) => onSort(event.currentTarget.value as SortKey)}>
          {columns.map(([key, title]) => (
            <option key={key} value={key}>
              {title}
            </option>
          ))}
        </select>
      </label>
      {isFiltered && (
        <>
          <span role="status">
            {left.toLocaleString("en")} of {counted(runs.length, "run")}
          </span>
          <button type="button" onClick={() => onOnly({})}>
            Show all
          </button>
        </>
      )}
    </div>
  );
}

interface FacetProps {
  runs: RunSummary[];
  only: Only;
  facet: Facet;
  onValue: (value: string) => void;
}

/** Hidden if there is nothing to choose from. */
function FacetChoice({ runs, only, facet, onValue }: FacetProps) {
  const choices = choicesOf(runs, only, facet);
  const chosen = only[facet] ?? "";
  if (!chosen && choices.length < 2) return null;
  const title = TITLES[facet];
  return (
    <select
      class={chosen ? "facet chosen" : "facet"}
      aria-label={title}
      value={chosen}
      onChange={(event) => onValue(event.currentTarget.value)}
    >
      <option value="">{title}: any</option>
      {choices.map(({ value, words, count }) => (
        <option key={value} value={value}>
          {words} ({count.toLocaleString("en")})
        </option>
      ))}
    </select>
  );
}
