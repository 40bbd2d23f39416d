/** One run: verdict, where the time went, what to change, the timeline that proves it. */

import { useEffect, useState } from "preact/hooks";
import type { DataSource } from "../data/source";
import { type Focus, focusOnBucket, focusOnFinding, focusOnStep } from "../focus";
import { isAboutLearning } from "../learning";
import type { Place } from "../links";
import { rootUrl } from "../root";
import { Timeline } from "../timeline/timeline";
import { wakeProfilePlugin } from "../trace_viewer";
import type { Bucket, Report, ReportAnswer, RunSummary } from "../types";
import { Notes, ProgressBar, Section, goTo } from "../ui/parts";
import { useReport } from "../use_data";
import { Changes } from "./changes";
import { ClusterMembers } from "./cluster";
import { CodeLines } from "./code_lines";
import { Computing } from "./computing";
import { Hosts } from "./hosts";
import { Learning } from "./learning";
import { LiveState } from "./live";
import { MissingEvidence, WhenReady } from "./states";
import { Threads } from "./threads";
import { TimeSpent } from "./time_spent";
import { Verdict } from "./verdict";

interface Props {
  source: DataSource;
  run: string;
  place: Place;
  move: (change: Partial<Place>) => void;
  reloads: number;
  /** Its line in the list; none if it is not in it. */
  summary: RunSummary | undefined;
  isDark: boolean;
  hasTraceViewer: boolean;
  /** The lines of code that capture a first epoch. */
  capture: string;
}

export function RunPage(props: Props) {
  const loaded = useReport(props.source, props.run, props.reloads, props.summary);
  return (
    <WhenReady run={props.run} loaded={loaded}>
      {(answer) => <ReadyRun {...props} answer={answer} />}
    </WhenReady>
  );
}

type Ready = ReportAnswer & { state: "ready" };

/**
 * A run in progress has a new report every few seconds. While someone looks at a part of the
 * timeline, it stays as it is; but a verdict that has changed is shown at once.
 */
function useHeld(newest: Ready, isBusyReading: boolean): [Ready, showNewest: (() => void) | null] {
  const [held, setHeld] = useState(newest);
  const isSame = newest.report.verdict.status === held.report.verdict.status;
  const isHeld = isBusyReading && isSame && newest.version !== held.version;
  const shown = isHeld ? { ...held, progress: newest.progress } : newest;
  useEffect(() => {
    if (!isHeld) setHeld(newest);
  }, [newest, isHeld]);
  return [shown, isHeld ? () => setHeld(newest) : null];
}

function ReadyRun(props: Props & { answer: Ready }) {
  const { source, run, place, move, isDark, hasTraceViewer } = props;
  const [focus, setFocus] = useState<Focus | null>(() => focusFromLink(props.answer.report, place));
  const [answer, showNewest] = useHeld(props.answer, place.range !== null || focus !== null);
  const { report } = answer;
  const live = props.summary?.live;
  const hasTimeline = report.window.duration_ps > 0;
  const hasSeveralHosts = report.host_ledgers.length > 1;
  const shownHost = place.host ?? report.host;
  const isHeldUp = report.threads.some(({ blamed }) => blamed);

  const show = (next: Focus | null) => {
    setFocus(next);
    move({ finding: next?.findingId ?? null });
  };
  const showAndGo = (next: Focus | null) => {
    show(next);
    if (next) goTo("timeline", "nearest");
  };
  /** The timeline of the host where something happened. */
  const showHost = (host: string | null | undefined) =>
    move({ host: host && host !== report.host ? host : null });
  const showBucket = async (bucket: Bucket) => {
    showHost(null); // the host whose time the buckets are
    const span = { start_ps: 0, end_ps: report.window.duration_ps };
    const request = { run, host: null, ...span, pixels: BUCKET_PIXELS };
    const detail = await source.timeline(request).catch(() => null); // the timeline itself says why
    if (detail) showAndGo(focusOnBucket(bucket, detail.answer));
  };
  useEffect(() => {
    if (hasTraceViewer) void wakeProfilePlugin(rootUrl());
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once for each page
  }, []);
  // A link sent to an open page.
  useEffect(() => {
    if (place.finding !== (focus?.findingId ?? null)) setFocus(focusFromLink(report, place));
    // eslint-disable-next-line react-hooks/exhaustive-deps -- follows the link, not what the reader does meanwhile
  }, [place.finding]);

  return (
    <>
      {live ? <LiveState live={live} /> : answer.progress && <ProgressBar {...answer} />}
      {showNewest && (
        <p class="newer" role="status">
          The logs have grown since this report was made.{" "}
          <button type="button" onClick={showNewest}>
            Show the latest report
          </button>
        </p>
      )}
      <Verdict report={report} changes={props.answer.changes} />
      <Notes notes={report.notes.filter(({ level }) => level === "error")} />
      {report.learning && isAboutLearning(report) && <Learning learning={report.learning} />}
      {report.computing && <Computing computing={report.computing} />}
      {isHeldUp && <Threads threads={report.threads} />}
      <MissingEvidence report={report} capture={props.capture} />
      <div class={`columns run-columns ${hasTimeline ? "with-timeline" : ""}`}>
        {hasTimeline && (
          <TimeSpent
            report={report}
            chosen={focus?.findingId ? null : (focus?.bucket ?? null)}
            onBucket={(bucket) => void showBucket(bucket)}
            onStep={(step) => showAndGo(focusOnStep(step))}
          />
        )}
        <Changes
          source={source}
          report={report}
          traces={hasTraceViewer ? answer.traces : null}
          chosen={focus?.findingId ?? null}
          onEvidence={(finding, index) => {
            showHost(finding.evidence[index ?? 0]?.host);
            showAndGo(focusOnFinding(finding, index));
          }}
        />
        <CodeLines report={report} />
        {hasTimeline && (
          <Section
            id="timeline"
            title={hasSeveralHosts && shownHost ? `Timeline of ${shownHost}` : "Timeline"}
          >
            <Timeline
              key={answer.version}
              {...{ source, report, isDark, focus, version: answer.version, host: place.host }}
              traces={answer.traces}
              hasTraceViewer={hasTraceViewer}
              runKey={run}
              setFocus={show}
              initialRange={place.range}
              onRange={(range) => move({ range })}
            />
          </Section>
        )}
      </div>
      {!isHeldUp && <Threads threads={report.threads} />}
      <Hosts
        ledgers={report.host_ledgers}
        lateness={report.lateness}
        chosen={shownHost}
        isDark={isDark}
        isEstimated={report.estimate !== null}
        onHost={(host) => {
          showHost(host);
          goTo("timeline", "nearest");
        }}
      />
      <ClusterMembers cluster={report.cluster} />
      <EvidenceNotes report={report} />
    </>
  );
}

const BUCKET_PIXELS = 1200;

function focusFromLink(report: Report, place: Place): Focus | null {
  const finding = report.findings.find(({ id }) => id === place.finding);
  return finding ? focusOnFinding(finding) : null;
}

/** What could be seen at all, and what the reader should know about it. */
function EvidenceNotes({ report }: { report: Report }) {
  const { start_source, end_source } = report.window;
  const subjects = Object.entries(report.evidence);
  const notes = report.notes.filter(({ level }) => level !== "error"); // those are at the top
  if (notes.length === 0 && subjects.length === 0) return null;
  return (
    <Section id="evidence" title="What could be seen">
      <dl class="subjects">
        {start_source && end_source && (
          <>
            <dt>window</dt>
            <dd>
              from “{start_source}” to “{end_source}”
            </dd>
          </>
        )}
        {subjects.map(([subject, sentence]) => (
          <>
            <dt>{subject}</dt>
            <dd>{sentence}</dd>
          </>
        ))}
      </dl>
      <Notes notes={notes} />
    </Section>
  );
}
