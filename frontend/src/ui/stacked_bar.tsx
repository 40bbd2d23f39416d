/** Time in buckets as one bar. Plain elements, so that it prints, scales and can be reached by key. */

import { percent, seconds } from "../format";
import { parts, total } from "../model";
import { BUCKET_COLOURS, inkOn } from "../palette";
import type { Bucket, BucketTimes, Ps } from "../types";

interface Props {
  times: BucketTimes;
  /** What a full bar stands for; its own sum unless several bars share a scale. */
  fullPs?: Ps;
  size?: "small" | "large";
  chosen?: Bucket | null;
  onChoose?: (bucket: Bucket) => void;
}

export function StackedBar({ times, fullPs, size = "small", chosen = null, onChoose }: Props) {
  const whole = total(times);
  const full = fullPs ?? whole;
  const summary = parts(times)
    .map(({ bucket, ps }) => `${bucket} ${percent(ps, whole)}`)
    .join(", ");
  return (
    <div
      class={`stacked-bar ${size}`}
      {...(onChoose ? { role: "group" } : { role: "img" })}
      aria-label={summary || "no time"}
    >
      {parts(times).map(({ bucket, ps }) => {
        const Segment = onChoose ? "button" : "span";
        const share = full > 0 ? ps / full : 0;
        return (
          <Segment
            key={bucket}
            class={`segment bucket-${bucket} ${chosen && chosen !== bucket ? "dimmed" : ""}`}
            title={`${bucket}: ${seconds(ps)} (${percent(ps, whole)})`}
            aria-label={onChoose && `${bucket} ${percent(ps, whole)}`}
            style={{
              width: `${share * 100}%`,
              backgroundColor: BUCKET_COLOURS[bucket],
              color: inkOn(bucket),
            }}
            {...(onChoose && {
              type: "button",
              onClick: () => onChoose(bucket),
            })}
          >
            {size === "large" && (
              <span class="segment-text">
                <strong>{bucket}</strong> <span class="figures">{percent(ps, whole)}</span>
              </span>
            )}
          </Segment>
        );
      })}
    </div>
  );
}

/** Which colour is which bucket. */
export function Legend({ buckets }: { buckets: readonly Bucket[] }) {
  return (
    <ul class="legend">
      {buckets.map((bucket) => (
        <li key={bucket}>
          <Swatch bucket={bucket} />
          {bucket}
        </li>
      ))}
    </ul>
  );
}

export function Swatch({ bucket }: { bucket: Bucket }) {
  return (
    <i class={`swatch bucket-${bucket}`} style={{ backgroundColor: BUCKET_COLOURS[bucket] }} />
  );
}
