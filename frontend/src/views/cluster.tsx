/** The cluster: who should have trained together, who is missing, who ended first. */

import { counted, timeOfDay } from "../format";
import { clusterSentence } from "../model";
import type { Cluster, Member } from "../types";
import { Section } from "../ui/parts";

export function ClusterMembers({ cluster }: { cluster: Cluster | null }) {
  if (!cluster) return null;
  const size = `${counted(cluster.size, "member")}, by ${cluster.size_source}`;
  return (
    <Section id="cluster" title="Cluster" aside={<span class="faint">{size}</span>}>
      <p class="plan-line">{clusterSentence(cluster)}</p>
      <div class="scrolling hosts-scroll" tabIndex={0} role="region" aria-label="Members">
        <table class="members-table">
          <thead>
            <tr>
              {["name", "steps", "last seen (UTC)", "last word", "left here"].map((title) => (
                <th scope="col" key={title}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {cluster.members.map((member) => (
              <MemberRow
                key={member.name}
                member={member}
                isFirst={member.name === cluster.ended_first}
              />
            ))}
            {cluster.missing.map((name) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td colSpan={3}>–</td>
                <td>
                  <strong>nothing</strong>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function MemberRow({ member, isFirst }: { member: Member; isFirst: boolean }) {
  const left = [member.traced && "a trace", member.captured && "records"].filter(Boolean);
  return (
    <tr>
      <th scope="row">{member.name}</th>
      <td>{member.steps ?? "–"}</td>
      <td>{timeOfDay(member.last_unix_ns) ?? "–"}</td>
      <td>{member.ended ?? "–"}</td>
      <td>
        {left.join(" and ")}
        {isFirst && <strong>, ended first</strong>}
      </td>
    </tr>
  );
}
