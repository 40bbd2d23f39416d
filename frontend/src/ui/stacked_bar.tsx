/** Time in buckets as one bar. Plain elements, so that it prints, scales and can be reached by keyboard. */

import { percent, seconds } from "../format";
import { parts, total } from "../model";
import { BUCKET_COLORS, inkOn } from "../palette";
import type { Bucket, BucketTimes, Ps } from "../types";

interface Props {
  times: BucketTimes;
  /** The time of a full bar; its own sum unless several bars share a scale. */
  fullPs?: Ps;
  size?: "small" | "large";
  isEstimated?: boolean;
  chosen?: Bucket | null;
  onChoose?: (bucket: Bucket) => void;
}

export function StackedBar(props: Props) {
  const { times, fullPs, size = "small", isEstimated, chosen = null, onChoose } = props;
  const whole = total(times);
  const full = fullPs ?? whole;
  const summary = parts(times)
    .map(({ bucket, ps }) => `${bucket} ${percent(ps, whole)}`)
    .join(", ");
  const how = isEstimated ? "estimated: " : "";
  return (
    <div
      class={`stacked-bar ${size} ${isEstimated ? "estimated" : ""}`}
      {...(onChoose ? { role: "group" } : { role: "img" })}
      aria-label={summary ? how + summary : "no time"}
    >
      {parts(times).map(({ bucket, ps }) => {
        const Segment = onChoose ? "button" : "span";
        const share = full > 0 ? ps / full : 0;
        return (
          <Segment
            key={bucket}
            class={`segment bucket-${bucket} ${chosen && chosen !== bucket ? "dimmed" : ""}`}
            title={`${bucket}: ${seconds(ps)} (${percent(ps, whole)})${isEstimated ? ", estimated" : ""}`}
            aria-label={onChoose && `${bucket} ${percent(ps, whole)}`}
            style={{
              width: `${share * 100}%`,
              backgroundColor: BUCKET_COLORS[bucket],
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

/** Which color is which bucket. */
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

/** "input or compile?": the logs cannot decide between these. */
export function Candidates({ buckets }: { buckets: readonly Bucket[] }) {
  if (buckets.length === 0) return null;
  const last = buckets.length - 1;
  return (
    <span
      class="candidates"
      title="The logs cannot decide between these; the most likely is first."
    >
      {buckets.map((bucket, index) => (
        <span key={bucket}>
          {index > 0 && (index === last ? " or " : ", ")}
          <Swatch bucket={bucket} />
          {bucket}
          {index === last && "?"}
        </span>
      ))}
    </span>
  );
}

export function Swatch({ bucket }: { bucket: Bucket }) {
  return <i class={`swatch bucket-${bucket}`} style={{ backgroundColor: BUCKET_COLORS[bucket] }} />;
}
