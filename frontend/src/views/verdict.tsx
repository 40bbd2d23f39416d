/** The answer: one sentence, and the figures behind it. */

import { between, percent, seconds } from "../format";
import {
  LITTLE_COVERED,
  about,
  figuresOf,
  isUnfinished,
  sortedBySeverity,
  windowName,
} from "../model";
import { STATUS_COLORS } from "../palette";
import { STATUS_ADVICE } from "../words";
import type { Report, VerdictChange } from "../types";
import { StatusBadge, goTo } from "../ui/parts";
import { Candidates } from "../ui/stacked_bar";
import { VerdictChanges } from "./live";

interface Props {
  report: Report;
  /** Changes of the verdict since TensorBoard was started. */
  changes: readonly VerdictChange[];
}

export function Verdict({ report, changes }: Props) {
  const { verdict, window } = report;
  return (
    <section
      class="verdict"
      id="verdict"
      aria-label="Verdict"
      style={{ "--status": STATUS_COLORS[verdict.status] }}
    >
      <div class="verdict-words">
        <div class="verdict-signs">
          <StatusBadge status={verdict.status} />
          <Candidates buckets={verdict.candidates} />
        </div>
        <h1>{verdict.sentence}</h1>
        <p class="verdict-advice">{advice(report)}</p>
        <VerdictChanges changes={changes} />
      </div>
      {window.duration_ps > 0 && <Figures report={report} />}
      {report.plan && <Outlook report={report} />}
    </section>
  );
}

/** A one-time cost may hide a recurring one. */
function advice({ verdict, findings }: Report): string {
  const comesBack = sortedBySeverity(findings).changes.some(
    ({ later_gain_ps }) => later_gain_ps.high > 0,
  );
  return verdict.status === "slow_once" && comesBack
    ? "Most of the cost occurs only once, but every epoch pays part of the rest: see the changes."
    : STATUS_ADVICE[verdict.status];
}

function Figures({ report }: { report: Report }) {
  const { window, later_epochs: later, verdict } = report;
  const isEstimated = report.estimate !== null;
  const spent = figuresOf(report);
  const hasLittle = window.covered_ps <= window.duration_ps * LITTLE_COVERED;
  const hasClocks = "clocks" in report.evidence;
  // What a stuck or dead run waited for says nothing about other epochs.
  const isOver = verdict.status === "stuck" || verdict.status === "dead";
  const comesAgain = !(isOver && isUnfinished(report));
  const isKnown = isEstimated || !hasLittle; // otherwise nobody knows what recurs
  return (
    <dl class="figures-row">
      <Fact name={windowName(report)} value={seconds(window.duration_ps)} />
      <Fact
        name={later.count > 1 ? `Later epochs (median of ${later.count})` : "Later epoch"}
        value={later.median_ps === null ? "none logged" : seconds(later.median_ps)}
        isWeak={later.median_ps === null}
      />
      {isKnown && (
        <>
          <Fact
            name="Once"
            value={about(seconds(spent.one_time_ps), isEstimated)}
            hint="Time that later epochs do not pay for: tracing, the first element …"
          />
          {comesAgain && (
            <Fact
              name="Every epoch"
              value={about(seconds(spent.recurring_ps), isEstimated)}
              hint="Time that every epoch spends."
            />
          )}
        </>
      )}
      <Fact
        name={isEstimated ? "Traced exactly" : `Covered by the ${hasClocks ? "clocks" : "trace"}`}
        value={percent(window.covered_ps, window.duration_ps)}
        isWeak={hasLittle}
        hint={
          isEstimated
            ? "The rest is estimated: see what this is based on."
            : "How much of the window the evidence covers."
        }
      />
      <Fact
        name="Confidence"
        value={percent(verdict.confidence, 1)}
        isWeak={verdict.confidence < 0.5}
      />
    </dl>
  );
}

function Fact(props: { name: string; value: string; hint?: string; isWeak?: boolean }) {
  return (
    <div class={`fact ${props.isWeak ? "weak" : ""}`} title={props.hint}>
      <dt>{props.name}</dt>
      <dd>{props.value}</dd>
    </div>
  );
}

/** The epoch now and after the changes, on one scale. */
function Outlook({ report }: { report: Report }) {
  const { findings, first_epoch_ps: epoch } = report.plan!;
  const changes =
    ["the change", "both changes"][findings.length - 1] ?? `all ${findings.length} changes`;
  const share = (ps: number) => `${(100 * ps) / epoch.now}%`;
  return (
    <button type="button" class="outlook" onClick={() => goTo("changes")}>
      <span class="outlook-title">With {changes}</span>
      <strong class="outlook-figure">{between(epoch)}</strong>
      <span class="outlook-bar" aria-hidden="true">
        <span class="outlook-sure" style={{ width: share(epoch.low) }} />
        <span class="outlook-perhaps" style={{ width: share(epoch.high - epoch.low) }} />
      </span>
      <span class="faint">instead of {seconds(epoch.now)}</span>
    </button>
  );
}
