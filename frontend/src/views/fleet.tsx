/** What all runs together lost, to which causes, and in which runs. */

import type { ComponentChildren } from "preact";
import { between, counted, percent, seconds } from "../format";
import { type Columns, columnsOf, fleetHeadline, shownFindings } from "../fleet";
import { about, largestFirst, total } from "../model";
import { BUCKET_COLORS } from "../palette";
import { type Facet, linkTo } from "../filters";
import { BUCKET_MEANINGS, spoken } from "../words";
import type { Fleet, FleetDay, RunSummary } from "../types";
import { Figure, Section, StatusBadge } from "../ui/parts";
import { Legend, StackedBar, Swatch } from "../ui/stacked_bar";
import { ReadAll } from "./runs_table";

interface Props {
  fleet: Fleet;
  runs: RunSummary[];
  onRun: (run: string) => void;
  /** Lists only those runs. */
  onOnly: (link: string | null) => void;
  onReadAll: () => void;
}

export function FleetPage({ fleet, runs, onRun, onOnly, onReadAll }: Props) {
  const list = (facet: Facet, value: string) => onOnly(linkTo({ [facet]: value }));
  return (
    <>
      <Section id="fleet" title={fleetHeadline(fleet)} aside={<ReadAll {...{ runs, onReadAll }} />}>
        {fleet.runs > 0 && (
          <StackedBar
            times={fleet.buckets_ps}
            size="large"
            isEstimated={fleet.estimated_runs > 0}
            onChoose={(bucket) => list("bucket", bucket)}
          />
        )}
      </Section>
      {fleet.runs > 0 && (
        <>
          <div class="columns fleet-columns">
            <Verdicts fleet={fleet} onStatus={(status) => list("status", status)} />
            <Buckets fleet={fleet} onBucket={(bucket) => list("bucket", bucket)} />
          </div>
          <Findings fleet={fleet} onFinding={(id) => list("finding", id)} onRun={onRun} />
          <Days days={fleet.days} onDay={(day) => list("day", day)} />
          <Costliest fleet={fleet} onRun={onRun} />
          <Unreadable fleet={fleet} onRun={onRun} />
        </>
      )}
    </>
  );
}

function Verdicts({ fleet, onStatus }: { fleet: Fleet; onStatus: (status: string) => void }) {
  return (
    <Section id="fleet-verdicts" title="Runs by verdict">
      <Table heads={["verdict", "runs", "share", "machine time"]} label="Verdicts">
        {fleet.statuses.map(({ status, runs, machine_ps }) => (
          <tr key={status}>
            <th scope="row">
              <button type="button" class="plain" onClick={() => onStatus(status)}>
                <StatusBadge status={status} />
              </button>
            </th>
            <Figure title="runs">{runs.toLocaleString("en")}</Figure>
            <Figure title="share">{percent(runs, fleet.runs)}</Figure>
            <Figure title="machine time">{seconds(machine_ps)}</Figure>
          </tr>
        ))}
      </Table>
    </Section>
  );
}

function Buckets({ fleet, onBucket }: { fleet: Fleet; onBucket: (bucket: string) => void }) {
  const whole = total(fleet.buckets_ps);
  return (
    <Section id="fleet-buckets" title="Where the time of the first epochs went">
      <Table heads={["bucket", "machine time", "share", "costs the most in"]} label="Buckets">
        {largestFirst(fleet.buckets_ps).map(({ bucket, ps }) => (
          <tr key={bucket}>
            <th scope="row" title={BUCKET_MEANINGS[bucket]}>
              <Swatch bucket={bucket} />
              <button type="button" class="link" onClick={() => onBucket(bucket)}>
                {bucket}
              </button>
            </th>
            <Figure title="machine time">{seconds(ps)}</Figure>
            <Figure title="share">{percent(ps, whole)}</Figure>
            <Figure title="costs the most in">
              {counted(fleet.primaries[bucket] ?? 0, "run")}
            </Figure>
          </tr>
        ))}
      </Table>
    </Section>
  );
}

interface FindingsProps {
  fleet: Fleet;
  onFinding: (id: string) => void;
  onRun: (run: string) => void;
}

function Findings({ fleet, onFinding, onRun }: FindingsProps) {
  const found = shownFindings(fleet);
  const longest = found[0]?.machine_ps ?? 0;
  return (
    <Section
      id="fleet-findings"
      title="Costliest findings"
      aside={<span class="faint">two findings may claim the same time</span>}
    >
      {found.length === 0 && <p class="faint">Nothing was found in any run.</p>}
      {found.length > 0 && (
        <Table
          heads={["finding", "runs", "machine time lost", "could be saved", "worst in"]}
          label="Findings"
        >
          {found.map(({ id, name, bucket, runs, machine_ps, gain_ps, worst }) => (
            <tr key={id}>
              <th scope="row">
                <Swatch bucket={bucket} />
                <button type="button" class="link" onClick={() => onFinding(id)}>
                  {id} {spoken(name)}
                </button>
              </th>
              <Figure title="runs">{runs.toLocaleString("en")}</Figure>
              <td class="figures fleet-cost" data-title="machine time lost">
                {machine_ps > 0 ? seconds(machine_ps) : "–"}
                <span class="fleet-bar" aria-hidden="true">
                  <i
                    style={{
                      width: `${longest > 0 ? (100 * machine_ps) / longest : 0}%`,
                      backgroundColor: BUCKET_COLORS[bucket],
                    }}
                  />
                </span>
              </td>
              <Figure title="could be saved">{gain_ps.high > 0 ? between(gain_ps) : "–"}</Figure>
              <td class="fleet-run" data-title="worst in">
                <button type="button" class="link" onClick={() => onRun(worst.run)}>
                  {worst.run}
                </button>
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  );
}

/** A column for each day. A single day is not a trend. */
function Days({ days, onDay }: { days: readonly FleetDay[]; onDay: (day: string) => void }) {
  const { columns, buckets, leftOut }: Columns = columnsOf(days);
  if (columns.length < 2) return null;
  return (
    <Section id="fleet-days" title="By day" aside={<Legend buckets={buckets} />}>
      <ol class="days">
        {columns.map(({ day, height, segments, runs, healthy, lostShare, label }) => (
          <li key={day}>
            <button
              type="button"
              class="plain day"
              onClick={() => onDay(day)}
              title={`${day} (UTC): ${counted(runs, "run")}, ${healthy} of them healthy, ${lostShare} lost`}
            >
              <span class="day-share figures">{lostShare}</span>
              <span class="day-column" style={{ height: `${height * 100}%` }}>
                {segments.map(({ bucket, share }) => (
                  <i
                    class={`bucket-${bucket}`}
                    style={{ height: `${share * 100}%`, backgroundColor: BUCKET_COLORS[bucket] }}
                  />
                ))}
              </span>
              <span class={label ? "day-label" : "day-label visually-hidden"}>{day}</span>
            </button>
          </li>
        ))}
      </ol>
      <p class="faint days-help">
        Height of a column: machine time of the first epochs. Above the column: the share that was
        lost.
        {leftOut > 0 && ` ${counted(leftOut, "earlier day")} left out.`}
      </p>
    </Section>
  );
}

function Costliest({ fleet, onRun }: { fleet: Fleet; onRun: (run: string) => void }) {
  const costly = fleet.costliest_runs.filter(({ machine_ps }) => machine_ps > 0);
  if (costly.length === 0) return null;
  return (
    <Section id="fleet-runs" title="Costliest runs">
      <Table
        heads={["run", "verdict", "mostly", "hosts", "machine time lost"]}
        label="Runs that lost the most"
      >
        {costly.map(({ run, status, primary, sentence, hosts, machine_ps, estimated }) => (
          <tr key={run}>
            <th scope="row">
              <button type="button" class="link" onClick={() => onRun(run)}>
                {run}
              </button>
              <span class="run-sentence faint">{sentence}</span>
            </th>
            <td>
              <StatusBadge status={status} />
            </td>
            <td class="fleet-bucket">
              <Swatch bucket={primary} />
              {primary}
            </td>
            <Figure title="hosts">{hosts}</Figure>
            <Figure title="machine time lost">{about(seconds(machine_ps), estimated)}</Figure>
          </tr>
        ))}
      </Table>
    </Section>
  );
}

function Unreadable({ fleet, onRun }: { fleet: Fleet; onRun: (run: string) => void }) {
  if (fleet.runs_with_errors === 0) return null;
  const left = fleet.runs_with_errors - fleet.errors.length;
  return (
    <Section
      id="fleet-errors"
      title={`Could not be read in full: ${counted(fleet.runs_with_errors, "run")}`}
    >
      <Table heads={["run", "why"]} label="What could not be read">
        {fleet.errors.map(({ run, text }) => (
          <tr key={run}>
            <th scope="row">
              <button type="button" class="link" onClick={() => onRun(run)}>
                {run}
              </button>
            </th>
            <td class="fleet-why">{text}</td>
          </tr>
        ))}
      </Table>
      {left > 0 && <p class="faint">And {left.toLocaleString("en")} more.</p>}
    </Section>
  );
}

interface TableProps {
  heads: string[];
  label: string;
  children: ComponentChildren;
}

function Table({ heads, label, children }: TableProps) {
  return (
    <div class="scrolling" tabIndex={0} role="region" aria-label={label}>
      <table class="fleet-table card-rows">
        <thead>
          <tr>
            {heads.map((head) => (
              <th scope="col" class={FIGURES.has(head) ? "figures" : ""}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

const FIGURES = new Set([
  "runs",
  "share",
  "machine time",
  "machine time lost",
  "costs the most in",
  "could be saved",
  "hosts",
]);
