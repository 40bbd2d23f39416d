/** The names of the lanes, next to the canvas; curves also show their range. */

import { extent } from "../format";
import { EVERY_THREAD, type Heading, type LaneBox, type Layout, type SeriesBox } from "./layout";

const LINE_HEIGHT = 16;

interface Props {
  layout: Layout | null;
  height: number;
  onToggle: (lane: string) => void;
}

export function Titles({ layout, height, onToggle }: Props) {
  return (
    <div class="timeline-titles" style={{ height: `${height}px` }}>
      {layout?.headings.map((heading) => (
        <HeadingTitle key={heading.title} heading={heading} onToggle={onToggle} />
      ))}
      {layout?.boxes.map((box) => {
        const firstRow = box.kind === "lane" ? box.rowHeight : LINE_HEIGHT;
        const place = { top: `${box.top + (firstRow - LINE_HEIGHT) / 2}px` };
        if (box.kind === "lane" && box.fold !== "none") {
          return <FoldTitle key={box.id} box={box} place={place} onToggle={onToggle} />;
        }
        return (
          <span key={box.id} class="lane-title" title={box.title} style={place}>
            {box.title}
            {box.kind === "series" && (
              <span class={`lane-extent faint ${box.isFlat ? "flat" : ""}`}>{extentOf(box)}</span>
            )}
          </span>
        );
      })}
    </div>
  );
}

function HeadingTitle({ heading, onToggle }: { heading: Heading; onToggle: Props["onToggle"] }) {
  return (
    <span class="lane-heading" style={{ top: `${heading.top}px` }}>
      {heading.title}{" "}
      {heading.hidden > 0 && (
        <button type="button" class="link" onClick={() => onToggle(EVERY_THREAD)}>
          {heading.hidden} more
        </button>
      )}
    </span>
  );
}

/** A lane that is deeper than what is shown of it. */
function FoldTitle(props: { box: LaneBox; place: { top: string }; onToggle: Props["onToggle"] }) {
  const { box, place, onToggle } = props;
  const isOpen = box.fold === "open";
  return (
    <button
      type="button"
      class="lane-title plain"
      style={place}
      aria-expanded={isOpen}
      title={`${box.title}: ${isOpen ? "close" : `open all ${box.lane.depth} rows`}`}
      onClick={() => onToggle(box.id)}
    >
      <span aria-hidden="true">{isOpen ? "▾" : "▸"}</span> {box.title}
    </button>
  );
}

/** The range of the part that is shown. */
function extentOf({ series }: SeriesBox): string {
  const values = series.points.flatMap(([, value]) => (value === null ? [] : [value]));
  if (values.length === 0) return "no finite value";
  const low = values.reduce((least, value) => Math.min(least, value));
  const high = values.reduce((most, value) => Math.max(most, value));
  return extent(low, high, series.unit);
}
