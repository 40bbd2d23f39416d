/** Where the time went: the window as one bar, its buckets and causes as a list, its steps. */

import { counted, percent, seconds } from "../format";
import { causesOf, largestFirst } from "../model";
import { BUCKET_MEANINGS, spokenCause } from "../words";
import type { Bucket, Estimate, Report, Step } from "../types";
import { Section } from "../ui/parts";
import { StackedBar, Swatch } from "../ui/stacked_bar";
import { StepChart } from "./step_chart";

interface Props {
  report: Report;
  chosen: Bucket | null;
  onBucket: (bucket: Bucket) => void;
  onStep: (step: Step) => void;
}

export function TimeSpent({ report, chosen, onBucket, onStep }: Props) {
  return (
    <Section id="time-spent" title="Where the time went">
      <StackedBar times={report.buckets_ps} size="large" {...{ chosen, onChoose: onBucket }} />
      {report.estimate && <Estimated estimate={report.estimate} />}
      <BucketTable report={report} onBucket={onBucket} />
      <StepChart steps={report.steps} onStep={onStep} />
    </Section>
  );
}

/** The bar above is exact, and calls what was not profiled unknown. */
function Estimated({ estimate }: { estimate: Estimate }) {
  const { profiled_steps: profiled, steps, buckets_ps: times } = estimate;
  return (
    <div class="estimate">
      <p class="faint">
        Probably all of it, estimated from {profiled.toLocaleString("en")} profiled steps of{" "}
        {counted(steps, "step")}:
      </p>
      <StackedBar times={times} size="large" />
    </div>
  );
}

const CAUSES_SHOWN = 4;

function BucketTable({ report, onBucket }: { report: Report; onBucket: (bucket: Bucket) => void }) {
  const whole = report.window.duration_ps;
  return (
    <table class="bucket-table">
      <thead class="visually-hidden">
        <tr>
          <th scope="col">bucket or cause</th>
          <th scope="col">time</th>
          <th scope="col">share</th>
        </tr>
      </thead>
      {largestFirst(report.buckets_ps).map(({ bucket, ps }) => (
        <tbody key={bucket}>
          <tr class="bucket-row">
            <th scope="row">
              <button type="button" class="plain" onClick={() => onBucket(bucket)}>
                <Swatch bucket={bucket} />
                <span class="bucket-name">{bucket}</span>
                <span class="faint">{BUCKET_MEANINGS[bucket]}</span>
              </button>
            </th>
            <td class="figures">{seconds(ps)}</td>
            <td class="figures">{percent(ps, whole)}</td>
          </tr>
          <Causes report={report} bucket={bucket} />
        </tbody>
      ))}
    </table>
  );
}

function Causes({ report, bucket }: { report: Report; bucket: Bucket }) {
  const causes = causesOf(report, bucket).slice(0, CAUSES_SHOWN);
  if (causes.length === 0) return null;
  return (
    <tr class="cause-row">
      <td colSpan={3}>
        {causes.map(({ cause, ps }) => (
          <span key={cause} class="cause">
            {spokenCause(cause)} <span class="figures">{seconds(ps)}</span>
          </span>
        ))}
      </td>
    </tr>
  );
}
