/** One finding: what to change, why, what it saves, and the events that prove it. */

import { useEffect, useState } from "preact/hooks";
import type { DataSource } from "../data/source";
import { between, percent, seconds } from "../format";
import { evidenceTime, gainSentence, groupedByLabel, predicted, slowsOtherWork } from "../model";
import { BUCKET_COLORS } from "../palette";
import { rootUrl } from "../root";
import { traceViewerUrl } from "../trace_viewer";
import { SEVERITY_WORDS } from "../words";
import type { Change, CodeLine, Evidence, Finding, Ps, Trace } from "../types";
import { CopyButton } from "../ui/parts";
import { CodeLineOf } from "./code_lines";
import { Manual } from "./manual";

interface Props {
  source: DataSource;
  finding: Finding;
  nowPs: Ps;
  traces: readonly Trace[] | null;
  isOpen: boolean;
  isChosen: boolean;
  onEvidence: (finding: Finding, index: number | null) => void;
}

export function FindingCard(props: Props) {
  const { source, finding, nowPs, isChosen } = props;
  const [isOpen, setOpen] = useState(props.isOpen);
  useEffect(() => {
    if (isChosen) setOpen(true);
  }, [isChosen]);

  const bodyId = `finding-${finding.id}`;
  const saving = finding.gain_ps.high || finding.later_gain_ps.high;
  return (
    <article
      id={`card-${finding.id}`}
      class={`card ${isChosen ? "chosen" : ""}`}
      style={{ "--bucket": BUCKET_COLORS[finding.bucket] }}
    >
      <h3 class="card-title">
        <button
          type="button"
          class="plain"
          aria-expanded={isOpen}
          aria-controls={bodyId}
          onClick={() => setOpen(!isOpen)}
        >
          <span class="card-line">
            <span class={`severity ${finding.severity}`}>{SEVERITY_WORDS[finding.severity]}</span>
            <span class="card-id">{finding.id}</span>
            <span class="spacer" />
            {saving > 0 && <span class="card-saving figures">saves {between(worth(finding))}</span>}
          </span>
          <span class="card-name">{finding.title}</span>
        </button>
      </h3>
      {isOpen && (
        <div class="card-body" id={bodyId}>
          <p class="card-change">{finding.change.text}</p>
          <Code change={finding.change} id={finding.id} lines={finding.lines} />
          <Worth finding={finding} nowPs={nowPs} />
          <p class="card-why">{finding.explanation}</p>
          <Stack frames={finding.stack} />
          <EvidenceList {...props} />
          <Manual source={source} id={finding.id} />
        </div>
      )}
    </article>
  );
}

function worth(finding: Finding) {
  return finding.gain_ps.high > 0 ? finding.gain_ps : finding.later_gain_ps;
}

function Worth({ finding, nowPs }: { finding: Finding; nowPs: Ps }) {
  const gain = gainSentence(finding);
  return (
    <dl class="worth">
      {finding.lost_ps > 0 && (
        <>
          <dt>Costs</dt>
          <dd>
            {seconds(finding.lost_ps)}{" "}
            <span class="faint">
              ({percent(finding.lost_ps, nowPs)}
              {finding.estimated && ", estimated from samples"})
            </span>
            {slowsOtherWork(finding) && " and slows down other work"}
          </dd>
        </>
      )}
      {gain && (
        <>
          <dt>Should save</dt>
          <dd>{gain}</dd>
        </>
      )}
      {finding.gain_ps.high > 0 && (
        <>
          <dt>First epoch</dt>
          <dd>
            {seconds(nowPs)} → <strong>{between(predicted(finding, nowPs))}</strong>
          </dd>
        </>
      )}
      <dt>Confidence</dt>
      <dd>{percent(finding.confidence, 1)}</dd>
    </dl>
  );
}

/** The user's own lines; before and after, as removed and added lines. */
function Code(props: { change: Change; id: string; lines: readonly CodeLine[] }) {
  const { change, id, lines } = props;
  if (!change.before && !change.after && lines.length === 0) return null;
  return (
    <div class="code">
      {lines.map((line) => (
        <CodeLineOf key={`${line.path}:${line.line}`} line={line} />
      ))}
      {change.after && <CopyButton text={change.after} label={`Copy the changed code of ${id}`} />}
      {change.before && (
        <pre class="before" tabIndex={0} aria-label="before">
          {change.before}
        </pre>
      )}
      {change.after && (
        <pre class="after" tabIndex={0} aria-label="after">
          {change.after}
        </pre>
      )}
    </div>
  );
}

/** The stack of the thread that proves it, innermost first. */
function Stack({ frames }: { frames: readonly string[] }) {
  if (frames.length === 0) return null;
  return (
    <div class="evidence">
      <h4>Stack</h4>
      <pre class="stack" tabIndex={0} aria-label="stack, innermost first">
        {frames.join("\n")}
      </pre>
    </div>
  );
}

/** Stretches of the same kind share a label; each leads to the timeline. */
function EvidenceList({ finding, traces, onEvidence }: Props) {
  if (finding.evidence.length === 0) return null;
  return (
    <div class="evidence">
      <h4>Evidence</h4>
      {[...groupedByLabel(finding.evidence)].map(([label, group]) => (
        <p key={label}>
          {label}{" "}
          {group.map(({ evidence, index }) => (
            <span key={index} class="chip">
              <button
                type="button"
                title="Show it in the timeline"
                onClick={() => onEvidence(finding, index)}
              >
                {evidenceTime(evidence)}
              </button>
              <TraceLink evidence={evidence} traces={traces} />
            </span>
          ))}
        </p>
      ))}
      {finding.evidence.length > 1 && (
        <button type="button" class="link" onClick={() => onEvidence(finding, null)}>
          Show all of it in the timeline
        </button>
      )}
    </div>
  );
}

function TraceLink({ evidence, traces }: { evidence: Evidence; traces: Props["traces"] }) {
  const url = traces && traceViewerUrl(rootUrl(), evidence, traces);
  if (!url) return null;
  const hint = "Open in the trace viewer";
  return (
    <a class="trace-link" href={url} target="_blank" rel="noopener" title={hint} aria-label={hint}>
      ↗
    </a>
  );
}
