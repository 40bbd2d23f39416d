/** Recommended changes: cards, the one that saves the most first. */

import { forecast, seconds } from "../format";
import { mayEnjoy, sortedBySeverity } from "../model";
import type { DataSource } from "../data/source";
import type { Finding, Report, Trace } from "../types";
import { Section, goTo } from "../ui/parts";
import { FindingCard } from "./finding_card";

interface Props {
  source: DataSource;
  report: Report;
  /** Null if there is no trace viewer to link to. */
  traces: readonly Trace[] | null;
  chosen: string | null;
  onEvidence: (finding: Finding, index: number | null) => void;
}

export function Changes({ source, report, traces, chosen, onEvidence }: Props) {
  const { changes, notes } = sortedBySeverity(report.findings);
  const card = (finding: Finding, isOpen: boolean) => (
    <FindingCard
      key={finding.id}
      {...{ source, finding, traces, onEvidence }}
      nowPs={report.window.duration_ps}
      isOpen={isOpen || chosen === finding.id}
      isChosen={chosen === finding.id}
    />
  );
  return (
    <Section id="changes" title="Recommended changes">
      {report.plan && report.plan.findings.length > 1 && <PlanLine report={report} />}
      {changes.length === 0 && <NothingToChange report={report} />}
      {changes.map((finding, index) => card(finding, index === 0))}
      {notes.length > 0 && (
        <>
          <h3 class="notes-title">Worth knowing</h3>
          {notes.map((finding) => card(finding, false))}
        </>
      )}
    </Section>
  );
}

/** Several changes together, in the order of their cards; a single one says the same on its card. */
function PlanLine({ report }: { report: Report }) {
  const { findings, first_epoch_ps: first, later_epoch_ps: later } = report.plan!;
  const inOrder = report.findings.filter(({ id }) => findings.includes(id));
  return (
    <p class="plan-line">
      {inOrder.length === 2 ? "Both of these" : `These ${inOrder.length} together`}:{" "}
      {inOrder.map(({ id, title }, index) => (
        <span key={id}>
          {index > 0 && ", "}
          <button type="button" class="link" title={title} onClick={() => goTo(`card-${id}`)}>
            {id}
          </button>
        </span>
      ))}
      . First epoch {seconds(first.now)} → <strong>{forecast(first)}</strong>
      {later && (
        <>
          , later epochs {seconds(later.now)} → <strong>{forecast(later)}</strong>
        </>
      )}
      .
    </p>
  );
}

function NothingToChange({ report }: { report: Report }) {
  return (
    <p class="faint">
      {mayEnjoy(report)
        ? "Nothing to change. Enjoy your training."
        : "Based on these logs, no change can be recommended."}
    </p>
  );
}
