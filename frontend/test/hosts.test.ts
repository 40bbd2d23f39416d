import { describe, expect, it } from "vitest";
import {
  byException,
  clusterSentence,
  heatMap,
  latenessSentence,
  memberGroups,
  sharesOf,
} from "../src/hosts";
import type { HostLedger, Lateness } from "../src/types";
import { reportOf } from "./samples";

describe("a cluster", () => {
  it("is told by who ended first and who is missing", () =>
    expect(clusterSentence(reportOf("stuck_job").cluster!)).toBe(
      "node1-worker-1 ended first, at 2023-11-14 22:13:30 UTC; the others waited 1 min 39 s. " +
        "worker 2 left no records here.",
    ));
  it("that waits for a member that never came says how long", () => {
    const cluster = { ...reportOf("stuck_job").cluster!, ended_first: null, ended_unix_ns: null };
    expect(clusterSentence(cluster)).toBe(
      "worker 2 left no records here; the others waited 1 min 39 s.",
    );
  });
  it("that is complete is said to be", () =>
    expect(clusterSentence(reportOf("communication_straggler").cluster!)).toBe(
      "All members left records here.",
    ));
});

describe("the heat map", () => {
  const { host_ledgers: ledgers, lateness } = reportOf("communication_straggler");

  it("has the buckets that some host spent time in, as shares of each host", () => {
    const { buckets, rows } = heatMap([ledgers[0]!, { ...ledgers[1]!, training_thread: null }]);
    expect(buckets).toEqual(["compile", "compute", "communication", "host", "profiler", "unknown"]);
    expect(rows[0]!.shares.get("communication")).toBeCloseTo(0.79);
    expect(rows[1]).toMatchObject({ host: "host-worker-1", trains: false });
  });
  it("begins with the host that the others waited for longest", () => {
    const { rows } = heatMap(ledgers, lateness);
    expect(rows.map(({ host }) => host)).toEqual(["host-worker-1", "host-worker-0"]);
    expect(rows[0]).toMatchObject({
      latePs: lateness!.hosts[0]!.cost_ps,
      lateCause: "host.python",
    });
  });
});

describe("many hosts", () => {
  const { host_ledgers: ledgers, lateness } = reportOf("communication_straggler");
  const [late, usual] = [ledgers[1]!, ledgers[0]!];
  const others: HostLedger[] = Array.from({ length: 63 }, (_, i) => ({ ...usual, host: `w${i}` }));
  const who: Lateness = { ...lateness!, hosts: [lateness!.hosts[0]!] };
  const { buckets, rows } = heatMap([...others, late], who);

  it("that do the same are one row, the late one stands by itself", () => {
    const { single, alike } = byException(rows, buckets);
    expect(single.map(({ host }) => host)).toEqual(["host-worker-1"]);
    expect(alike).toHaveLength(63);
    expect(sharesOf(alike, "communication")).toBe("79%");
  });
  it("are summed up in a sentence", () =>
    expect(latenessSentence(rows)).toMatch(
      /^63 wait, 1 is late: host-worker-1, by 1\.\d\d s, because of host\.python\.$/,
    ));
  it("are shown by themselves where they differ, though nobody is late", () => {
    const odd = { ...usual, host: "odd", buckets_ps: late.buckets_ps };
    const without = heatMap([...others, odd], null);
    expect(byException(without.rows, buckets).single.map(({ host }) => host)).toEqual(["odd"]);
    expect(latenessSentence(without.rows)).toBe("");
  });
  it("that are few are all shown", () => {
    const few = heatMap([usual, late], who);
    expect(byException(few.rows, few.buckets)).toMatchObject({ single: few.rows, alike: [] });
  });
  it("are members of which the same is said once, but for who ended first", () => {
    const cluster = reportOf("communication_straggler").cluster!;
    const members = Array.from({ length: 8 }, (_, i) => ({
      ...cluster.members[0]!,
      name: `worker ${i}`,
    }));
    const groups = memberGroups({ ...cluster, members, ended_first: "worker 3" });
    expect(groups.map(({ name }) => name)).toEqual(["worker 3", "7 hosts like worker 0"]);
  });
});
