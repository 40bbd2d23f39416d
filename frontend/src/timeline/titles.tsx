/** The names of the lanes, beside the canvas; curves also tell between what and what they run. */

import { extent } from "../format";
import { type Layout, RULER_HEIGHT, type SeriesBox } from "./layout";

const LINE_HEIGHT = 16;

interface Props {
  layout: Layout | null;
  height: number;
  hasFlags: boolean;
}

export function Titles({ layout, height, hasFlags }: Props) {
  return (
    <div class="timeline-titles" style={{ height: `${height}px` }}>
      {layout && hasFlags && (
        <span class="lane-title" style={{ top: `${RULER_HEIGHT}px` }}>
          findings
        </span>
      )}
      {layout?.headings.map(({ title, top }) => (
        <span key={title} class="lane-heading" style={{ top: `${top}px` }}>
          {title}
        </span>
      ))}
      {layout?.boxes.map((box) => {
        const firstRow = box.kind === "lane" ? box.rowHeight : LINE_HEIGHT;
        const top = box.top + (firstRow - LINE_HEIGHT) / 2;
        return (
          <span key={box.id} class="lane-title" title={box.title} style={{ top: `${top}px` }}>
            {box.title}
            {box.kind === "series" && <span class="lane-extent faint">{extentOf(box)}</span>}
          </span>
        );
      })}
    </div>
  );
}

/** Of the part that is shown. */
function extentOf({ series }: SeriesBox): string {
  const values = series.points.flatMap(([, value]) => (value === null ? [] : [value]));
  if (values.length === 0) return "no number";
  const low = values.reduce((least, value) => Math.min(least, value));
  const high = values.reduce((most, value) => Math.max(most, value));
  return extent(low, high, series.unit);
}
