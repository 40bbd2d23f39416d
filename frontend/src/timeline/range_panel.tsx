/** A stretch that was selected by dragging, in sums: by bucket, by op, and as flames. */

import { useState } from "preact/hooks";
import type { DataSource } from "../data/source";
import { flamesOfRange } from "../flames";
import { percent, seconds, shortened } from "../format";
import { GROUP_COLORS, bucketOf } from "../palette";
import type { BucketTimes, Ps, RangeAnswer, Report, Span } from "../types";
import { StackedBar } from "../ui/stacked_bar";
import { FlameGraph } from "../views/flame_graph";
import { CauseList } from "./cause_list";
import { useAnswer, useInSight } from "./event_panel";

const OPS_SHOWN = 12;
const CAUSES_SHOWN = 8;

interface Props {
  source: DataSource;
  run: string;
  host: string | null;
  report: Report;
  originPs: Ps;
  range: Span;
  onZoom: () => void;
  onClose: () => void;
}

export function RangePanel({ source, run, host, range, originPs, onZoom, onClose }: Props) {
  const { answer, error } = useAnswer(
    (signal) => source.range({ run, host, ...range }, signal),
    [run, host, range.start_ps, range.end_ps],
  );
  const [isFlames, setFlames] = useState(false);
  const panel = useInSight(answer !== null);
  const length = range.end_ps - range.start_ps;
  return (
    <aside class="event-panel" aria-label="The chosen stretch" aria-live="polite" ref={panel}>
      <header>
        <h3>
          {seconds(length)} from {seconds(Math.max(0, range.start_ps - originPs))}
        </h3>
        <span class="button-group">
          <button type="button" title="Zoom to this range (Enter)" onClick={onZoom}>
            Zoom to range
          </button>
          {(answer?.flames.length ?? 0) > 0 && (
            <button type="button" aria-pressed={isFlames} onClick={() => setFlames(!isFlames)}>
              Flame view
            </button>
          )}
          <button type="button" aria-label="Close (Esc)" onClick={onClose}>
            ✕
          </button>
        </span>
      </header>
      {error && <p class="faint">{error}</p>}
      {answer && isFlames && <Flames answer={answer} />}
      {answer && !isFlames && <Sums answer={answer} />}
    </aside>
  );
}

function Sums({ answer: { causes, ops } }: { answer: RangeAnswer }) {
  return (
    <>
      <StackedBar times={byBucket(causes)} />
      <div class="event-columns">
        <div>
          <h4>By cause</h4>
          <CauseList causes={causes} most={CAUSES_SHOWN} />
        </div>
        <div>
          <h4>By op, on all threads</h4>
          <div class="scrolling" tabIndex={0} role="region" aria-label="Ops in this stretch">
            <OpTable ops={ops} />
          </div>
        </div>
      </div>
    </>
  );
}

function OpTable({ ops }: { ops: RangeAnswer["ops"] }) {
  const whole = ops.reduce((sum, [, , , own]) => sum + own, 0);
  if (ops.length === 0) return <p class="faint">No event was recorded here.</p>;
  return (
    <table class="op-table">
      <thead>
        <tr>
          <th scope="col">op</th>
          <th scope="col">times</th>
          <th scope="col" title="The time of the op itself, without what ran inside it">
            own time
          </th>
          <th scope="col">total time</th>
        </tr>
      </thead>
      <tbody>
        {ops.slice(0, OPS_SHOWN).map(([name, count, ps, own]) => (
          <tr key={name}>
            <th scope="row" title={name}>
              {shortened(name, 60)}
            </th>
            <td class="figures">{count.toLocaleString("en")}</td>
            <td class="figures">
              {seconds(own)} <span class="faint">{percent(own, whole)}</span>
            </td>
            <td class="figures">{seconds(ps)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Flames({ answer }: { answer: RangeAnswer }) {
  const label = (frame: number) => answer.flames[frame]?.[1] ?? "all threads";
  return (
    <FlameGraph
      whole={flamesOfRange(answer.flames)}
      label={label}
      color={GROUP_COLORS.device}
      isStrong={() => false}
    />
  );
}

function byBucket(causes: RangeAnswer["causes"]): BucketTimes {
  const times: BucketTimes = {};
  for (const [cause, ps] of causes) {
    const bucket = bucketOf(cause);
    times[bucket] = (times[bucket] ?? 0) + ps;
  }
  return times;
}
