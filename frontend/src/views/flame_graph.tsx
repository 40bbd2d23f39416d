/** What Python ran for a bucket: each box is a line of code, below the one that called it. */

import { useState } from "preact/hooks";
import { type Flame, boxesOf, flamesOf } from "../flames";
import { percent, seconds } from "../format";
import { BUCKET_COLORS } from "../palette";
import type { Stacks } from "../types";

const ROW_PIXELS = 20;

export function FlameGraphs({ stacks }: { stacks: Stacks }) {
  const buckets = [...new Set(stacks.stacks.map(({ bucket }) => bucket))];
  return (
    <>
      {buckets.map((bucket) => (
        <details key={bucket} class="flames">
          <summary>Flame graph of {bucket}</summary>
          <FlameGraph
            whole={flamesOf(stacks, bucket)}
            label={(frame) => stacks.frames[frame] ?? `all of ${bucket}`}
            color={BUCKET_COLORS[bucket]}
            isStrong={(frame) => stacks.users.includes(frame)}
          />
        </details>
      ))}
    </>
  );
}

interface Props {
  whole: Flame;
  /** The label of a box; -1 is the box for everything. */
  label: (frame: number) => string;
  color: string;
  /** Whether it is the user's own code. */
  isStrong: (frame: number) => boolean;
}

export function FlameGraph({ whole, label, color, isStrong }: Props) {
  const [chosen, setChosen] = useState<Flame | null>(null);
  const boxes = boxesOf(chosen ?? whole);
  const rows = 1 + Math.max(...boxes.map(({ depth }) => depth));
  return (
    <div class="flame-graph" style={{ height: `${rows * ROW_PIXELS}px`, "--bucket": color }}>
      {boxes.map(({ flame, left, width, depth }, index) => {
        const text = label(flame.frame);
        return (
          <button
            key={index}
            class={isStrong(flame.frame) ? "flame users" : "flame"}
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
