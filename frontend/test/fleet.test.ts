import { describe, expect, it } from "vitest";
import { MOST_DAYS, columnsOf, fleetHeadline, shownFindings } from "../src/fleet";
import type { FleetDay } from "../src/types";
import { S, fleet } from "./samples";

describe("the sums over all runs", () => {
  it("are told in one sentence, with the time of all machines", () =>
    expect(fleetHeadline(fleet({ lost_ps: 11.7 * S, estimated_runs: 0 }))).toBe(
      "9 runs: their first epochs took 2 min 06 s of machine time; " +
        "11.7 s of it (9%) was lost.",
    ));

  it("say how many of the runs are estimated", () =>
    expect(fleetHeadline(fleet({ estimated_runs: 2 }))).toMatch(
      /was lost\. For 2 runs, these times are estimated\.$/,
    ));

  it("are not told before there are any", () =>
    expect(fleetHeadline(fleet({ runs: 0 }))).toBe("No run has been analyzed yet"));

  it("blame nothing on what was not traced", () => {
    expect(fleet().findings.map(({ id }) => id)).toContain("ST412");
    expect(shownFindings(fleet()).map(({ id }) => id)).not.toContain("ST412");
    expect(shownFindings(fleet()).map(({ id }) => id)).toContain("ST001");
  });

  it("count the time in which a run was stuck, whatever it waited for", () => {
    const stuck = { ...fleet().findings[0]!, id: "ST510", bucket: "unknown" as const };
    const shown = shownFindings(fleet({ findings: [{ ...stuck, machine_ps: 60 * S }] }));
    expect(shown.map(({ id }) => id)).toEqual(["ST510"]);
  });
});

describe("a column for each day", () => {
  const real = fleet().days[0]!;
  const nothing = Object.fromEntries(Object.keys(real.buckets_ps).map((bucket) => [bucket, 0]));
  const day = (name: string | null, input: number, compute: number): FleetDay => ({
    day: name,
    statuses: { healthy: 1, slow_always: 2 },
    lost_ps: input,
    buckets_ps: { ...real.buckets_ps, ...nothing, input, compute },
  });

  it("is as high as the day was long, and divided as the day was", () => {
    const { columns, buckets } = columnsOf([
      day("2026-11-15", 6 * S, 2 * S),
      day("2026-11-16", S, 3 * S),
    ]);
    expect(columns[0]).toMatchObject({ height: 1, lostShare: "75%", runs: 3, healthy: 1 });
    expect(columns[1]).toMatchObject({ height: 0.5, lostShare: "25%" });
    expect(columns[1]!.segments).toEqual([
      { bucket: "input", share: 0.25 },
      { bucket: "compute", share: 0.75 },
    ]);
    expect(buckets).toEqual(["input", "compute"]);
  });

  it("leaves out runs without a clock, and the days for which there is no room", () => {
    const days = Array.from({ length: MOST_DAYS + 3 }, (_, i) =>
      day(`2026-${String(i).padStart(4, "0")}`, S, S),
    );
    const { columns, leftOut } = columnsOf([day(null, S, S), ...days]);
    expect(columns).toHaveLength(MOST_DAYS);
    expect(columns.at(-1)!.day).toBe(days.at(-1)!.day);
    expect(leftOut).toBe(3);
    expect(columns.filter(({ label }) => label).length).toBeLessThanOrEqual(10);
  });

  it("a day without time is flat", () =>
    expect(columnsOf([day("2026-11-15", 0, 0)]).columns[0]).toMatchObject({
      height: 0,
      segments: [],
    }));
});
