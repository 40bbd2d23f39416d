/** Two runs side by side: what was saved, what is new. */

import { difference, percent, seconds } from "../format";
import {
  type Comparison,
  compare,
  comparisonSentence,
  figuresOf,
  stepAxisEnd,
  total,
} from "../model";
import type { Finding, Report, Step } from "../types";
import { Figure, Section, StatusBadge } from "../ui/parts";
import { StackedBar, Swatch } from "../ui/stacked_bar";
import { StepChart } from "./step_chart";

interface Props {
  before: { run: string; report: Report };
  after: { run: string; report: Report };
  onSwap: () => void;
  onStep: (run: string, step: Step) => void;
}

export function Compare({ before, after, onSwap, onStep }: Props) {
  const comparison = compare(before.report, after.report);
  const spent = [before, after].map(({ report }) => figuresOf(report).buckets_ps);
  const fullPs = Math.max(...spent.map(total));
  return (
    <>
      <Section
        id="compare"
        title={comparisonSentence(comparison)}
        aside={
          <button type="button" onClick={onSwap}>
            ⇄ Swap
          </button>
        }
      >
        <div class="compare-bars">
          {[before, after].map(({ run, report }, index) => (
            <div class="compare-run" key={run}>
              <span class="compare-name">
                <span class="faint">{index === 0 ? "before" : "after"}</span> {run}
                {report.estimate && <span class="estimated-mark faint"> estimated</span>}
              </span>
              <StatusBadge status={report.verdict.status} />
              <span class="figures">{seconds(report.window.duration_ps)}</span>
              <StackedBar
                times={spent[index]!}
                isEstimated={report.estimate !== null}
                size="large"
                {...{ fullPs }}
              />
            </div>
          ))}
        </div>
        <div class="columns compare-details">
          <Differences comparison={comparison} />
          <div class="compare-steps">
            {[before, after].map(({ run, report }) => (
              <StepChart
                key={run}
                title={`Steps of ${run}`}
                steps={report.steps}
                axisEnd={Math.max(
                  stepAxisEnd(before.report.steps),
                  stepAxisEnd(after.report.steps),
                )}
                onStep={(step) => onStep(run, step)}
              />
            ))}
          </div>
        </div>
      </Section>
      <div class="columns compare-findings">
        <FindingsOf title="Gone" findings={comparison.gone} empty="No finding is gone." />
        <FindingsOf
          title="Still there"
          findings={comparison.kept.map(({ after: finding }) => finding)}
          empty="No finding appears in both."
        />
        <FindingsOf title="New" findings={comparison.appeared} empty="No finding is new." />
      </div>
    </>
  );
}

function Differences({ comparison }: { comparison: Comparison }) {
  const { before, after } = comparison;
  return (
    <div class="scrolling" tabIndex={0} role="region" aria-label="Differences">
      <table class="difference-table card-rows">
        <thead>
          <tr>
            <th scope="col">bucket</th>
            <th scope="col">before{before.isEstimated && ", estimated"}</th>
            <th scope="col">after{after.isEstimated && ", estimated"}</th>
            <th scope="col">difference</th>
          </tr>
        </thead>
        <tbody>
          {comparison.buckets.map((row) => (
            <tr key={row.bucket}>
              <th scope="row">
                <Swatch bucket={row.bucket} />
                {row.bucket}
              </th>
              <Figure title="before">{timeAndShare(row.before, before.durationPs)}</Figure>
              <Figure title="after">{timeAndShare(row.after, after.durationPs)}</Figure>
              <Difference ps={row.after - row.before} />
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">first epoch</th>
            <Figure title="before">{seconds(before.durationPs)}</Figure>
            <Figure title="after">{seconds(after.durationPs)}</Figure>
            <Difference ps={after.durationPs - before.durationPs} />
          </tr>
          <tr>
            <th scope="row">
              median step <span class="faint">({stepCounts(comparison)})</span>
            </th>
            <Figure title="before">{seconds(before.stepPs)}</Figure>
            <Figure title="after">{seconds(after.stepPs)}</Figure>
            <Difference ps={after.stepPs - before.stepPs} />
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

function timeAndShare(ps: number, whole: number): string {
  return ps > 0 ? `${seconds(ps)} · ${percent(ps, whole)}` : "–";
}

function stepCounts({ before, after }: Comparison): string {
  return before.steps === after.steps
    ? `${before.steps} each`
    : `${before.steps} and ${after.steps} of them`;
}

function Difference({ ps }: { ps: number }) {
  const kind = ps < 0 ? "won" : ps > 0 ? "lost" : "";
  return (
    <Figure title="difference" kind={kind}>
      {difference(ps)}
    </Figure>
  );
}

function FindingsOf(props: { title: string; findings: Finding[]; empty: string }) {
  return (
    <Section id={`compare-${props.title.replaceAll(" ", "-").toLowerCase()}`} title={props.title}>
      {props.findings.length === 0 && <p class="faint">{props.empty}</p>}
      <ul class="finding-list">
        {props.findings.map((finding) => (
          <li key={finding.id}>
            <Swatch bucket={finding.bucket} />
            <span>
              <strong>{finding.id}</strong> {finding.title}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}
