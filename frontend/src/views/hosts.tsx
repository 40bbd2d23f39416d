/** Several hosts: host × bucket, so that the one that differs stands out. */

import { useState } from "preact/hooks";
import { percent, seconds } from "../format";
import { type HeatRow, byException, crowd, heatMap, latenessSentence, sharesOf } from "../hosts";
import { median } from "../model";
import { heat } from "../palette";
import type { Bucket, HostLedger, Lateness } from "../types";
import { spokenCause } from "../words";
import { Section } from "../ui/parts";
import { Swatch } from "../ui/stacked_bar";

interface Props {
  ledgers: HostLedger[];
  lateness: Lateness | null;
  chosen: string | null;
  isDark: boolean;
  /** Whether the run shows an estimate; a host has only what was traced. */
  isEstimated: boolean;
  onHost: (host: string) => void;
}

export function Hosts({ ledgers, lateness, chosen, isDark, isEstimated, onHost }: Props) {
  const [showsAll, setShowsAll] = useState(false);
  if (ledgers.length < 2) return null;
  const { buckets, rows } = heatMap(ledgers, lateness);
  const { single, alike } = byException(rows, buckets);
  const shown = showsAll ? rows : single;
  const sentence = latenessSentence(rows);
  const aside = `share of the window${isEstimated ? ", as traced" : ""}`;
  return (
    <Section id="hosts" title="Hosts" aside={<span class="faint">{aside}</span>}>
      {sentence && <p class="plan-line">{sentence}</p>}
      <div class="scrolling hosts-scroll" tabIndex={0} role="region" aria-label="Hosts by bucket">
        <table class="heat-map card-rows">
          <thead>
            <tr>
              <th scope="col">name</th>
              {buckets.map((bucket) => (
                <th scope="col" key={bucket}>
                  <Swatch bucket={bucket} />
                  {bucket}
                </th>
              ))}
              {lateness && <th scope="col">the others waited</th>}
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <HostRow
                key={row.host}
                {...{ row, buckets, isDark, onHost }}
                isChosen={row.host === chosen}
                hasLateness={lateness !== null}
              />
            ))}
            {alike.length > 0 && !showsAll && (
              <tr>
                <th scope="row">
                  <button type="button" class="link" onClick={() => setShowsAll(true)}>
                    {crowd(alike.map(({ host }) => host))}
                  </button>
                </th>
                {buckets.map((bucket) => (
                  <Cell
                    key={bucket}
                    {...{ bucket, isDark }}
                    share={median(alike.map(({ shares }) => shares.get(bucket) ?? 0))}
                    text={sharesOf(alike, bucket)}
                  />
                ))}
                {lateness && <td class="figures late">–</td>}
              </tr>
            )}
          </tbody>
        </table>
      </div>
      {alike.length > 0 && (
        <button type="button" class="link" onClick={() => setShowsAll(!showsAll)}>
          {showsAll ? "Group hosts that are alike" : `Show all ${rows.length} hosts`}
        </button>
      )}
    </Section>
  );
}

interface RowProps {
  row: HeatRow;
  buckets: Bucket[];
  isChosen: boolean;
  isDark: boolean;
  hasLateness: boolean;
  onHost: (host: string) => void;
}

function HostRow({ row, buckets, isChosen, isDark, hasLateness, onHost }: RowProps) {
  const { host, shares, trains, latePs, lateCause } = row;
  return (
    <tr class={isChosen ? "chosen" : ""}>
      <th scope="row">
        <button type="button" class="link" onClick={() => onHost(host)}>
          {host}
        </button>
        {!trains && <span class="faint"> no training thread</span>}
      </th>
      {buckets.map((bucket) => {
        const share = shares.get(bucket) ?? 0;
        return <Cell key={bucket} {...{ bucket, share, isDark }} text={percent(share, 1)} />;
      })}
      {hasLateness && (
        <td
          class="figures late"
          data-title="the others waited"
          title={lateCause ? spokenCause(lateCause) : undefined}
        >
          {latePs > 0 ? seconds(latePs) : "–"}
        </td>
      )}
    </tr>
  );
}

function Cell(props: { bucket: Bucket; share: number; text: string; isDark: boolean }) {
  const { bucket, share, text, isDark } = props;
  return (
    <td class="figures" data-title={bucket}>
      {share > 0 ? (
        <span class="heat" style={heat(bucket, share, isDark)}>
          {text}
        </span>
      ) : (
        "–"
      )}
    </td>
  );
}
