/** Pages for when there is nothing, or only a part, to show. They say what to do. */

import type { ComponentChildren } from "preact";
import { LITTLE_COVERED } from "../model";
import type { Progress, Report, ReportAnswer, RunsAnswer } from "../types";
import type { Loaded } from "../use_data";
import { CopyButton, Notes, ProgressBar } from "../ui/parts";
import { useRunName } from "../ui/run_name";

export function CaptureCode({ code }: { code: string }) {
  return (
    <div class="code">
      <CopyButton text={code} label="Copy the code" />
      <pre class="after" tabIndex={0} aria-label="code that captures the first epoch">
        {code}
      </pre>
    </div>
  );
}

export function NoRuns({ problems, capture, logdir }: RunsAnswer) {
  return (
    <div class="state">
      <h1>No training run found yet</h1>
      <p>
        Stall reads the profiler traces and event files under{" "}
        <code>{logdir || "the log directory"}</code>. These lines capture a first epoch:
      </p>
      <CaptureCode code={capture} />
      <p class="faint">
        This page checks again whenever TensorBoard reloads. Limit a long epoch with{" "}
        <code>steps_per_epoch</code>: a trace of the first 200 steps is enough to find the cause.
      </p>
      <Notes notes={problems} />
    </div>
  );
}

export function Analyzing({ run, progress }: { run: string; progress: Progress | null }) {
  return (
    <div class="state" role="status">
      <h1>Reading {run}</h1>
      <ProgressBar progress={progress} />
      <p class="faint">You can leave this page; the work continues, and its result is kept.</p>
    </div>
  );
}

export function Failed({
  title,
  error,
  onRetry,
}: {
  title: string;
  error: string;
  onRetry: () => void;
}) {
  return (
    <div class="state" role="alert">
      <h1>{title}</h1>
      <p>{error}</p>
      <button type="button" onClick={onRetry}>
        Try again
      </button>
    </div>
  );
}

/** A report once it is there; until then, what is being done about it. */
export function WhenReady(props: {
  run: string;
  loaded: Loaded<ReportAnswer>;
  children: (answer: ReportAnswer & { state: "ready" }) => ComponentChildren;
}) {
  const { answer, error, reload } = props.loaded;
  const run = useRunName()(props.run);
  if (answer?.state === "ready") return <>{props.children(answer)}</>;
  if (answer?.state === "failed") {
    const title = `${run} could not be analyzed`;
    return <Failed title={title} error={answer.error} onRetry={reload} />;
  }
  if (error) return <Failed title={`${run} could not be read`} error={error} onRetry={reload} />;
  return answer && <Analyzing run={run} progress={answer.progress} />;
}

/** What is missing from this run's logs, and how to get it; null if nothing is. */
export function MissingEvidence({ report, capture }: { report: Report; capture: string }) {
  const { covered_ps, duration_ps } = report.window;
  const isUndecided = report.verdict.candidates.length > 0;
  if (duration_ps > 0 && covered_ps > duration_ps * LITTLE_COVERED) return null;
  if (report.framework !== "tensorflow") return null; // the lines are for TensorFlow
  if (report.estimate && !isUndecided) return null; // what there is says enough
  const isUntraced = covered_ps === 0;
  const { why, how, code } = report.captured
    ? gapOfTheCapture(isUntraced)
    : gapOfAnOrdinaryLog(isUntraced, capture);
  return (
    <section class="panel teach" aria-label="What is missing">
      <h2>
        {isUndecided
          ? "What would settle it"
          : isUntraced
            ? "No profile of the first epoch"
            : "The profile saw little of the first epoch"}
      </h2>
      <p>
        {why} {how}
      </p>
      {code && <CaptureCode code={code} />}
    </section>
  );
}

interface Gap {
  why: string;
  how: string;
  code: string | null;
}

function gapOfTheCapture(isUntraced: boolean): Gap {
  if (isUntraced) {
    return {
      why: "There was a capture, but it saved no profile:",
      how: "profiling was turned off, another profiler was running, or the process ended too soon.",
      code: null,
    };
  }
  return {
    why: "The capture profiled only parts of the epoch, to stay within its budget.",
    how: "A larger budget shows more, but makes the first epoch slower:",
    code: 'StallCallback("logs/run1", budget=0.5)',
  };
}

function gapOfAnOrdinaryLog(isUntraced: boolean, capture: string): Gap {
  return {
    why: isUntraced
      ? "Event files show that time passed, not where it went."
      : "The profiler was on for only a short time. Keras's own profile_batch, for example, starts late and stops early: tracing and the first batch are over by then.",
    how: "These lines capture the whole first epoch:",
    code: capture,
  };
}
