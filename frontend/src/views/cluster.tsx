/** The cluster: who should have trained together, who is missing, who ended first. */

import { counted, moment } from "../format";
import { type MemberGroup, clusterSentence, memberGroups } from "../hosts";
import type { Cluster } from "../types";
import { Section } from "../ui/parts";

export function ClusterMembers({ cluster }: { cluster: Cluster | null }) {
  if (!cluster) return null;
  const size = `${counted(cluster.size, "member")}, according to ${cluster.size_source}`;
  return (
    <Section id="cluster" title="Cluster" aside={<span class="faint">{size}</span>}>
      <p class="plan-line">{clusterSentence(cluster)}</p>
      <div class="scrolling hosts-scroll" tabIndex={0} role="region" aria-label="Members">
        <table class="members-table card-rows">
          <thead>
            <tr>
              {["name", "steps", "last seen (UTC)", "how it ended", "left behind"].map((title) => (
                <th scope="col" key={title}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {memberGroups(cluster).map((group) => (
              <MemberRow
                key={group.name}
                group={group}
                isFirst={group.members[0]!.name === cluster.ended_first}
              />
            ))}
            {cluster.missing.map((name) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td colSpan={3}>–</td>
                <td data-title="left behind">
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

function MemberRow({ group, isFirst }: { group: MemberGroup; isFirst: boolean }) {
  const { members, name } = group;
  const member = members[0]!;
  const left = [member.traced && "a trace", member.captured && "a capture"].filter(Boolean);
  const seen = members.map(({ last_unix_ns }) => last_unix_ns ?? 0);
  return (
    <tr>
      <th scope="row" title={members.map((one) => one.name).join(", ")}>
        {name}
      </th>
      <td data-title="steps">{member.steps ?? "–"}</td>
      <td data-title="last seen (UTC)">{moment(Math.max(...seen) || null) ?? "–"}</td>
      <td data-title="how it ended">{member.ended ?? "–"}</td>
      <td data-title="left behind">
        {left.join(" and ")}
        {isFirst && <strong>{left.length > 0 && ", "}ended first</strong>}
      </td>
    </tr>
  );
}
