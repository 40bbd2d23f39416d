/** Several hosts: host × bucket, so that the one that differs stands out. */

import { percent } from "../format";
import { heatMap } from "../model";
import { BUCKET_COLOURS } from "../palette";
import type { HostLedger } from "../types";
import { Section } from "../ui/parts";
import { Swatch } from "../ui/stacked_bar";

interface Props {
  ledgers: HostLedger[];
  chosen: string | null;
  onHost: (host: string) => void;
}

export function Hosts({ ledgers, chosen, onHost }: Props) {
  if (ledgers.length < 2) return null;
  const { buckets, rows } = heatMap(ledgers);
  return (
    <Section id="hosts" title="Hosts" aside={<span class="faint">share of the window</span>}>
      <div class="scrolling" tabIndex={0} role="region" aria-label="Hosts">
        <table class="heat-map">
          <thead>
            <tr>
              <th scope="col">host</th>
              {buckets.map((bucket) => (
                <th scope="col" key={bucket}>
                  <Swatch bucket={bucket} />
                  {bucket}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ host, shares, trains }) => (
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
                      <i
                        class="heat"
                        style={{ backgroundColor: BUCKET_COLOURS[bucket], opacity: share }}
                      />
                      <span>{share > 0 ? percent(share, 1) : "–"}</span>
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}
