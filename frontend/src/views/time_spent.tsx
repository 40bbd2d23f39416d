/** Where the time went: the window as one bar, its buckets and causes as a list, its steps. */

import { percent, seconds } from "../format";
import {
  bucketRange,
  causesOf,
  figuresOf,
  largestFirst,
  phaseParts,
  phaseTimes,
  tracedShare,
} from "../model";
import { BUCKET_MEANINGS, spoken, spokenCause } from "../words";
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
      <StackedBar
        times={figuresOf(report).buckets_ps}
        size="large"
        isEstimated={report.estimate !== null}
        {...{ chosen, onChoose: onBucket }}
      />
      {report.estimate && <Estimated report={report} estimate={report.estimate} />}
      <BucketTable report={report} onBucket={onBucket} />
      <Phases report={report} />
      <StepChart steps={report.steps} onStep={onStep} />
    </Section>
  );
}

/** Estimates are marked as such, with their reasons; what was traced is a line, not a bar. */
function Estimated({ report, estimate }: { report: Report; estimate: Estimate }) {
  return (
    <div class="estimate">
      <p>
        <strong>Estimated</strong>, with the range of each bucket; {tracedShare(report)}.
      </p>
      {estimate.rests_on.length > 0 && (
        <details open>
          <summary>What this is based on</summary>
          <ul class="faint">
            {estimate.rests_on.map((sentence) => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
        </details>
      )}
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
      {largestFirst(figuresOf(report).buckets_ps).map(({ bucket, ps }) => (
        <tbody key={bucket}>
          <tr class="bucket-row">
            <th scope="row">
              <button type="button" class="plain" onClick={() => onBucket(bucket)}>
                <Swatch bucket={bucket} />
                <span class="bucket-name">{bucket}</span>
                <span class="faint">{BUCKET_MEANINGS[bucket]}</span>
              </button>
            </th>
            <td class="figures">
              {seconds(ps)} <Range text={bucketRange(report, bucket)} />
            </td>
            <td class="figures">{percent(ps, whole)}</td>
          </tr>
          <Causes report={report} bucket={bucket} />
        </tbody>
      ))}
    </table>
  );
}

function Range({ text }: { text: string }) {
  return text ? <span class="range faint">({text})</span> : null;
}

/** If there is more than training: how long each part of the epoch took, and how sure that is. */
function Phases({ report: { phases, estimate } }: { report: Report }) {
  if (phases.every(({ name }) => name === "training")) return null;
  const times = phaseTimes(phases);
  return (
    <div class="phases">
      <h3>Phases</h3>
      <table class="phase-table">
        <thead class="visually-hidden">
          <tr>
            <th scope="col">phase</th>
            <th scope="col">time</th>
            <th scope="col">where it went</th>
          </tr>
        </thead>
        <tbody>
          {phases.map((phase, index) => (
            <tr key={phase.start_ps}>
              <th scope="row">{spoken(phase.name)}</th>
              <td class="figures">{times[index]}</td>
              <td class="faint">{phaseParts(phase, estimate !== null)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
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
