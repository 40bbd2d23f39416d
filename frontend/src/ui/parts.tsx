/** Small pieces that several views share. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { counted } from "../format";
import { gravestFirst } from "../model";
import { STATUS_COLORS } from "../palette";
import { STATUS_SIGNS, STATUS_WORDS } from "../words";
import type { Note, Progress, Status } from "../types";

export function StatusBadge({ status }: { status: Status }) {
  return (
    <span class="status-badge" style={{ "--status": STATUS_COLORS[status] }}>
      <span aria-hidden="true">{STATUS_SIGNS[status]}</span>
      {STATUS_WORDS[status]}
    </span>
  );
}

/** A part of the page with a title; `aside` is next to the title. */
export function Section(props: {
  id: string;
  title: string;
  aside?: ComponentChildren;
  children: ComponentChildren;
}) {
  const titleId = `${props.id}-title`;
  return (
    <section class="panel" id={props.id} aria-labelledby={titleId}>
      <header class="panel-header">
        <h2 id={titleId}>{props.title}</h2>
        {props.aside && <div class="panel-aside">{props.aside}</div>}
      </header>
      {props.children}
    </section>
  );
}

/** A cell with the title of its column, for a screen that has no room for columns. */
export function Figure(props: { title: string; kind?: string; children: ComponentChildren }) {
  const { title, kind = "", children } = props;
  return (
    <td class={`figures ${kind}`} data-title={title}>
      {children}
    </td>
  );
}

/** Scrolls to a section. Not with a #link: in TensorBoard, the <base> would lead away from here. */
export function goTo(sectionId: string, block: "start" | "nearest" = "start"): void {
  document.getElementById(sectionId)?.scrollIntoView({ behavior: "smooth", block });
}

const CONFIRM_MS = 1600;

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [outcome, setOutcome] = useState<"copied" | "failed" | null>(null);
  const copy = async () => {
    setOutcome((await copied(text)) ? "copied" : "failed");
    setTimeout(() => setOutcome(null), CONFIRM_MS);
  };
  return (
    <button type="button" class="copy" aria-label={label} onClick={() => void copy()}>
      {outcome === "copied" ? "Copied" : outcome === "failed" ? "Select and copy by hand" : "Copy"}
    </button>
  );
}

/** The clipboard needs a secure page, which TensorBoard on another machine often is not. */
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "visually-hidden";
    document.body.append(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    return isCopied;
  }
}

export function ProgressBar({ progress }: { progress: Progress | null }) {
  const share = progress?.share ?? 0;
  return (
    <div class="progress">
      <progress max={1} value={share} aria-label={progress?.text ?? "waiting"} />
      <span class="faint">{progress?.text ?? "Waiting for its turn"}</span>
    </div>
  );
}

const NOTE_SIGNS: Record<Note["level"], string> = { error: "✕", warning: "!", info: "i" };

/** All notes; or the `most` most serious ones, and the others on request. */
export function Notes({ notes, most = Infinity }: { notes: readonly Note[]; most?: number }) {
  if (notes.length === 0) return null;
  if (notes.length <= most) return <NoteList notes={notes} />;
  const inOrder = gravestFirst(notes);
  return (
    <div>
      <NoteList notes={inOrder.slice(0, most)} />
      <details class="more-notes">
        <summary>And {counted(notes.length - most, "more note")}</summary>
        <NoteList notes={inOrder.slice(most)} />
      </details>
    </div>
  );
}

function NoteList({ notes }: { notes: readonly Note[] }) {
  return (
    <ul class="notes">
      {notes.map((note) => (
        <li class={`note-item ${note.level}`}>
          <span class="note-sign" aria-label={note.level}>
            {NOTE_SIGNS[note.level]}
          </span>
          <span>
            {note.text}
            {note.where && <span class="faint note-where"> {note.where}</span>}
          </span>
        </li>
      ))}
    </ul>
  );
}
