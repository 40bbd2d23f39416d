/** The manual page of a finding, fetched when it is unfolded. */

import { useState } from "preact/hooks";
import type { DataSource } from "../data/source";
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
          {text.split(/\n\s*\n/).map((paragraph) => (
            <p>{paragraph}</p>
          ))}
        </>
      ))}
    </details>
  );
}
