/** What is under the pointer, in words. */

import { figure, percent, seconds, shortened } from "../format";
import { bucketOf } from "../palette";
import { BUCKET_MEANINGS, spokenCause } from "../words";
import type { Item, Ps } from "../types";
import { Swatch } from "../ui/stacked_bar";
import type { Hovered } from "./hit";
import type { Pointer } from "./use_controls";

const NAME_MOST = 300;
const WIDTH = 320;
const DIVISION_SHOWN = 5;

interface Props {
  hovered: Hovered;
  names: readonly string[];
  windowPs: Ps;
  pointer: Pointer;
  surfaceWidth: number;
}

export function Tooltip({ hovered, names, windowPs, pointer, surfaceWidth }: Props) {
  const left = Math.max(0, Math.min(pointer.x + 14, surfaceWidth - WIDTH));
  return (
    <div class="tooltip" style={{ left: `${left}px`, top: `${pointer.y + 18}px` }}>
      {hovered.kind === "point" ? (
        <PointText hovered={hovered} />
      ) : hovered.box.id === "ledger" ? (
        <CauseText item={hovered.item} names={names} windowPs={windowPs} />
      ) : (
        <EventText item={hovered.item} names={names} windowPs={windowPs} />
      )}
    </div>
  );
}

function PointText({ hovered: { box, value, ps } }: { hovered: Hovered & { kind: "point" } }) {
  return (
    <>
      <strong>{box.title}</strong>
      <p class="figures">
        {value === null ? "NaN or infinite" : figure(value, box.series.unit)}{" "}
        <span class="faint">at {seconds(ps)}</span>
      </p>
    </>
  );
}

interface ItemProps {
  item: Item;
  names: readonly string[];
  windowPs: Ps;
}

function CauseText({ item, names, windowPs }: ItemProps) {
  const [start, end, name, , , division] = item;
  const causes = division ?? [[name, end - start] as const];
  return (
    <>
      {causes.slice(0, DIVISION_SHOWN).map(([index, ps]) => {
        const cause = names[index] ?? "";
        const bucket = bucketOf(cause);
        return (
          <p key={index}>
            <Swatch bucket={bucket} />
            <strong>
              {bucket}: {spokenCause(cause)}
            </strong>{" "}
            {division ? (
              <span class="figures">{seconds(ps)}</span>
            ) : (
              <span class="faint">{BUCKET_MEANINGS[bucket]}</span>
            )}
          </p>
        );
      })}
      <When item={item} windowPs={windowPs} />
    </>
  );
}

function EventText({ item, names, windowPs }: ItemProps) {
  return (
    <>
      <strong>{shortened(names[item[2]] ?? "", NAME_MOST)}</strong>
      <When item={item} windowPs={windowPs} />
      {item[4] > 1 && (
        <p class="faint">
          and {(item[4] - 1).toLocaleString("en")} more, too short to show separately. Zoom in.
        </p>
      )}
    </>
  );
}

function When({ item: [start, end], windowPs }: { item: Item; windowPs: Ps }) {
  return (
    <p class="figures">
      {seconds(end - start)} <span class="faint">({percent(end - start, windowPs)})</span>, starting
      at {seconds(start)}
    </p>
  );
}
