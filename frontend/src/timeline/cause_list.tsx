/** Causes with their times, largest first. */

import { percent, seconds } from "../format";
import { bucketOf } from "../palette";
import type { CauseTime } from "../types";
import { Swatch } from "../ui/stacked_bar";
import { spokenCause } from "../words";

export function CauseList({ causes, most }: { causes: readonly CauseTime[]; most: number }) {
  const whole = causes.reduce((sum, [, ps]) => sum + ps, 0);
  return (
    <ul class="cause-list">
      {causes.slice(0, most).map(([cause, ps]) => (
        <li key={cause}>
          <Swatch bucket={bucketOf(cause)} />
          {bucketOf(cause)}: {spokenCause(cause)} <span class="figures">{seconds(ps)}</span>{" "}
          <span class="faint">{percent(ps, whole)}</span>
        </li>
      ))}
    </ul>
  );
}
