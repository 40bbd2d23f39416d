/** Chooses a run out of many: a field that shows its name and, when entered, searches all of them. */

import { useEffect, useRef, useState } from "preact/hooks";
import { matchingRuns } from "../filters";
import { counted } from "../format";
import { inShort, sortedRuns } from "../runs";
import { STATUS_SIGNS, STATUS_WORDS } from "../words";
import type { RunSummary } from "../types";
import { useRunName } from "./run_name";

const MOST_SHOWN = 50; // others are found by typing another letter

interface Props {
  label: string;
  runs: RunSummary[];
  value: string;
  onChange: (run: string) => void;
}

export function RunPicker({ label, runs, value, onChange }: Props) {
  const [text, setText] = useState<string | null>(null); // null while it is closed
  const [at, setAt] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const isOpen = text !== null;
  const found = isOpen ? sortedRuns(matchingRuns(runs, text), "status", false) : [];
  const shown = found.slice(0, MOST_SHOWN);
  const name = useRunName();
  const id = `picker-${label.replaceAll(" ", "-")}`;
  const chosen = runs.find(({ run }) => run === value);
  const open = (wanted: string) => {
    setText(wanted);
    setAt(0);
  };
  const choose = (run: string | undefined) => {
    setText(null);
    if (run !== undefined && run !== value) onChange(run);
  };
  const keys: Record<string, () => void> = {
    ArrowDown: () => (isOpen ? setAt(Math.min(at + 1, shown.length - 1)) : open("")),
    ArrowUp: () => setAt(Math.max(at - 1, 0)),
    Enter: () => (isOpen ? choose(shown[at]?.run) : open("")),
    Escape: () => setText(null),
  };
  useEffect(() => {
    list.current?.children[at]?.scrollIntoView({ block: "nearest" });
  }, [at, isOpen]);
  return (
    <div class="run-picker">
      <input
        type="text"
        role="combobox"
        aria-label={label}
        aria-expanded={isOpen}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={isOpen && shown.length > 0 ? `${id}-${at}` : undefined}
        autocomplete="off"
        spellcheck={false}
        placeholder={isOpen ? `Search ${counted(runs.length, "run")}` : undefined}
        title={name(value)}
        value={text ?? named(name(value), chosen)}
        onFocus={(event) => event.currentTarget.select()}
        onClick={() => !isOpen && open("")}
        onBlur={() => setText(null)}
        // While closed, it shows a name, which typing must replace.
        onInput={(event) => open(isOpen ? event.currentTarget.value : (event.data ?? ""))}
        onKeyDown={(event) => {
          const act = keys[event.key];
          if (!act) return;
          event.preventDefault();
          act();
        }}
      />
      <ul id={id} role="listbox" aria-label={label} class="picker-list" hidden={!isOpen} ref={list}>
        {shown.map((run, index) => (
          <li
            key={run.run}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === at}
            // Before the field loses the focus, which closes the list.
            onPointerDown={(event) => {
              event.preventDefault();
              choose(run.run);
            }}
          >
            <span class="picker-name">{named(name(run.run), run)}</span>
            {run.state === "ready" && <span class="picker-about faint">{about(run)}</span>}
          </li>
        ))}
        {isOpen && found.length === 0 && (
          <li role="option" aria-disabled="true" aria-selected="false" class="faint">
            No run matches.
          </li>
        )}
        {found.length > shown.length && (
          <li role="option" aria-disabled="true" aria-selected="false" class="faint">
            And {(found.length - shown.length).toLocaleString("en")} more.
          </li>
        )}
      </ul>
    </div>
  );
}

function named(name: string, run: RunSummary | undefined): string {
  if (!run) return `${name} (not found)`;
  return run.status ? `${STATUS_SIGNS[run.status]} ${name}` : name;
}

function about(run: RunSummary): string {
  const [words, text] = [run.status ? STATUS_WORDS[run.status] : "", inShort(run) ?? ""];
  return !words || text.startsWith(words) ? text : `${words}: ${text}`;
}
