/** What Python ran for a bucket: each box a line of code, below the one that called it. */

import { useState } from "preact/hooks";
import { type Flame, boxesOf, flamesOf } from "../flames";
import { percent, seconds } from "../format";
import { BUCKET_COLOURS } from "../palette";
import type { Bucket, Stacks } from "../types";

const ROW_PIXELS = 20;

export function FlameGraphs({ stacks }: { stacks: Stacks }) {
  const buckets = [...new Set(stacks.stacks.map(({ bucket }) => bucket))];
  return (
    <>
      {buckets.map((bucket) => (
        <details key={bucket} class="flames">
          <summary>Flame graph of {bucket}</summary>
          <FlameGraph {...{ stacks, bucket }} />
        </details>
      ))}
    </>
  );
}

function FlameGraph({ stacks, bucket }: { stacks: Stacks; bucket: Bucket }) {
  const whole = flamesOf(stacks, bucket);
  const [chosen, setChosen] = useState<Flame | null>(null);
  const boxes = boxesOf(chosen ?? whole);
  const rows = 1 + Math.max(...boxes.map(({ depth }) => depth));
  const users = new Set(stacks.users);
  return (
    <div
      class="flame-graph"
      style={{ height: `${rows * ROW_PIXELS}px`, "--bucket": BUCKET_COLOURS[bucket] }}
    >
      {boxes.map(({ flame, left, width, depth }, index) => {
        const text = stacks.frames[flame.frame] ?? `all of ${bucket}`;
        return (
          <button
            key={index}
            class={users.has(flame.frame) ? "flame users" : "flame"}
            style={{
              left: `${100 * left}%`,
              width: `${100 * width}%`,
              top: `${depth * ROW_PIXELS}px`,
            }}
            title={`${text}\n${seconds(flame.ps)}, ${percent(flame.ps, whole.ps)}`}
            onClick={() => setChosen(depth === 0 ? null : flame)}
          >
            {text.split("/").pop()}
          </button>
        );
      })}
    </div>
  );
}
