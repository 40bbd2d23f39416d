/** The findings' flags above the lanes: buttons, so that keyboard and screen reader reach them. */

import { BUCKET_COLORS } from "../palette";
import { ANNOTATION_ROW_HEIGHT, type Flag, flagLeft } from "./annotations";

interface Props {
  flags: readonly Flag[];
  width: number;
  rows: number;
  chosen: string | null;
  onChoose: (flag: Flag) => void;
}

export function Flags({ flags, width, rows, chosen, onChoose }: Props) {
  return (
    <>
      {flags.map((flag) => {
        const color = BUCKET_COLORS[flag.bucket];
        const left = Math.max(flag.x, 0);
        const extent = Math.max(Math.min(flag.endX, width) - left, 2);
        const key = `${flag.findingId} ${flag.evidenceIndex}`;
        const top = (flag.row ?? 0) * ANNOTATION_ROW_HEIGHT;
        return flag.row === null ? (
          <i
            key={key}
            class="flag-place"
            style={{
              left: `${left}px`,
              top: `${rows * ANNOTATION_ROW_HEIGHT}px`,
              width: `${extent}px`,
              background: color,
            }}
          />
        ) : (
          <button
            key={key}
            type="button"
            class={`flag ${chosen === flag.findingId ? "chosen" : ""}`}
            title={`${flag.findingId}: ${flag.label}. Click to see it.`}
            style={{
              left: `${flagLeft(flag, width)}px`,
              top: `${top}px`,
              maxWidth: `${flag.labelWidth}px`,
              borderColor: color,
            }}
            onClick={() => onChoose(flag)}
          >
            {flag.label}
          </button>
        );
      })}
    </>
  );
}
