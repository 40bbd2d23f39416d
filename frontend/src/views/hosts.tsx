/** Several hosts: host × bucket, so that the one that differs stands out. */

import { percent, seconds } from "../format";
import { heatMap } from "../model";
import { heat } from "../palette";
import type { HostLedger, Lateness } from "../types";
import { spokenCause } from "../words";
import { Section } from "../ui/parts";
import { Swatch } from "../ui/stacked_bar";

interface Props {
  ledgers: HostLedger[];
  lateness: Lateness | null;
  chosen: string | null;
  isDark: boolean;
  /** What the run shows besides; a host has only what was traced of it. */
  isEstimated: boolean;
  onHost: (host: string) => void;
}

export function Hosts({ ledgers, lateness, chosen, isDark, isEstimated, onHost }: Props) {
  if (ledgers.length < 2) return null;
  const { buckets, rows } = heatMap(ledgers, lateness);
  const aside = `share of the window${isEstimated ? ", as traced" : ""}`;
  return (
    <Section id="hosts" title="Hosts" aside={<span class="faint">{aside}</span>}>
      <div class="scrolling hosts-scroll" tabIndex={0} role="region" aria-label="Hosts by bucket">
        <table class="heat-map">
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
            {rows.map(({ host, shares, trains, latePs, lateCause }) => (
              <tr key={host} class={host === chosen ? "chosen" : ""}>
                <th scope="row">
                  <button type="button" class="link" onClick={() => onHost(host)}>
                    {host}
                  </button>
                  {!trains && <span class="faint"> no training thread</span>}
                </th>
                {buckets.map((bucket) => {
                  const share = shares.get(bucket) ?? 0;
                  return (
                    <td key={bucket} class="figures">
                      {share > 0 ? (
                        <span class="heat" style={heat(bucket, share, isDark)}>
                          {percent(share, 1)}
                        </span>
                      ) : (
                        "–"
                      )}
                    </td>
                  );
                })}
                {lateness && (
                  <td class="figures late" title={lateCause ? spokenCause(lateCause) : undefined}>
                    {latePs > 0 ? seconds(latePs) : "–"}
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}
