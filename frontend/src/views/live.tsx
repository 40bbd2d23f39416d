/** What a run in progress is doing right now, and why its verdict has changed. */

import { liveLines } from "../live";
import { total } from "../model";
import { STATUS_WORDS } from "../words";
import type { Live, VerdictChange } from "../types";
import { StackedBar } from "../ui/stacked_bar";

export function LiveState({ live }: { live: Live }) {
  return (
    <section class="live panel" aria-label="Right now">
      {live.stall && <p class="live-stall">{live.stall}</p>}
      {liveLines(live).map(({ who, text, now, late, buckets_ps }) => (
        <div key={who} class="live-line">
          <p>
            <strong class={late ? "lost" : "live-sign"}>
              {[who || "Running", late && "is late"].filter(Boolean).join(" ")}
            </strong>
            : {text}
            {now && <span class="faint">; {now}</span>}
          </p>
          {total(buckets_ps) > 0 && <StackedBar times={buckets_ps} />}
        </div>
      ))}
    </section>
  );
}

/** A verdict never changes without a reason. */
export function VerdictChanges({ changes }: { changes: readonly VerdictChange[] }) {
  const [last, ...earlier] = changes;
  if (!last) return null;
  return (
    <div class="verdict-changes">
      <ChangeLine change={last} />
      {earlier.length > 0 && (
        <details>
          <summary>Before that</summary>
          {earlier.map((change) => (
            <ChangeLine key={change.unix_s} change={change} />
          ))}
        </details>
      )}
    </div>
  );
}

function ChangeLine({ change: { unix_s, status, sentence, why } }: { change: VerdictChange }) {
  const time = new Date(unix_s * 1000).toTimeString().slice(0, 8);
  return (
    <p class="faint" title={sentence}>
      Changed from “{STATUS_WORDS[status]}” at {time}: {why}
    </p>
  );
}
