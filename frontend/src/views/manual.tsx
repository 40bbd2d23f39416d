/** The manual page of a finding, fetched when it is opened. */

import { useState } from "preact/hooks";
import type { DataSource } from "../data/source";
import { type Piece, blocksOf } from "../markup";
import type { ManualPage } from "../types";

export function Manual({ source, id }: { source: DataSource; id: string }) {
  const [page, setPage] = useState<ManualPage | null>(null);
  const [error, setError] = useState<string | null>(null);
  const unfold = (event: Event) => {
    if (!(event.currentTarget as HTMLDetailsElement).open || page) return;
    source.manual(id).then(setPage, (failure: Error) => setError(failure.message));
  };
  return (
    <details class="manual" onToggle={unfold}>
      <summary>How this is found and measured</summary>
      {error && <p class="faint">{error}</p>}
      {page?.sections.map(({ heading, text }) => (
        <>
          <h4>{heading}</h4>
          <Blocks text={text} />
        </>
      ))}
    </details>
  );
}

function Blocks({ text }: { text: string }) {
  return (
    <>
      {blocksOf(text).map((block) => {
        if (block.kind === "code") return <pre tabIndex={0}>{block.text}</pre>;
        if (block.kind === "paragraph") {
          return (
            <p>
              <Line pieces={block.pieces} />
            </p>
          );
        }
        return (
          <ul>
            {block.items.map((pieces) => (
              <li>
                <Line pieces={pieces} />
              </li>
            ))}
          </ul>
        );
      })}
    </>
  );
}

function Line({ pieces }: { pieces: readonly Piece[] }) {
  return <>{pieces.map(({ text, isCode }) => (isCode ? <code>{text}</code> : text))}</>;
}
