/**
 * The lanes, however many: they scroll, and only what is on the screen is painted. The
 * canvas stays in sight while its contents move.
 */

import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Focus } from "../focus";
import { seconds } from "../format";
import type { Ps, Span } from "../types";
import { paintCanvas } from "../ui/canvas";
import type { Chosen } from "./chosen";
import { hoveredAt } from "./hit";
import type { Layout } from "./layout";
import { type Theme, paint } from "./paint";
import { Titles } from "./titles";
import { Tooltip } from "./tooltip";
import type { Pointer } from "./use_controls";
import type { Scale } from "./view";

const EMPTY_HEIGHT = 240;

interface Props {
  surface: RefObject<HTMLDivElement | null>;
  layout: Layout | null;
  names: readonly string[];
  theme: Theme;
  scale: Scale;
  focus: Focus | null;
  chosen: Chosen | null;
  pointer: Pointer | null;
  selection: Span | null;
  isDragging: boolean;
  windowPs: Ps;
  error: string | null;
  label: string;
  onKeyDown: (event: KeyboardEvent) => void;
  onToggle: (lane: string) => void;
}

export function Lanes(props: Props) {
  const { layout, names, theme, scale, focus, chosen, pointer, selection, windowPs } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const { top, visible } = useScrolled(scroller);
  const width = scale.width;
  const height = layout?.height ?? EMPTY_HEIGHT;
  const painted = Math.min(height, visible || height);

  useLayoutEffect(() => {
    if (!canvas.current || !layout || width <= 1) return;
    paintCanvas(canvas.current, width, painted, (context) =>
      paint(context, {
        ...{ layout, names, scale, theme, top, selection, chosen },
        height: painted,
        marked: focus?.spans ?? [],
        markedBucket: focus?.bucket ?? null,
        cursorPs: pointer ? scale.ps(pointer.x) : null,
      }),
    );
  });
  useLayoutEffect(() => {
    const box = layout?.boxes.find(({ id }) => id === chosen?.lane);
    if (box && scroller.current) showRow(scroller.current, box.top, box.height);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- scrolls when an event is chosen, not when the layout changes
  }, [chosen?.lane, chosen?.row]);

  const hovered =
    pointer && layout && !props.isDragging && hoveredAt(layout, scale, pointer.x, pointer.y);
  return (
    <div class="timeline-lanes" ref={scroller}>
      <div class="timeline-grid">
        <Titles layout={layout} height={height} onToggle={props.onToggle} />
        <div
          class="timeline-surface"
          ref={props.surface}
          style={{ height: `${height}px` }}
          tabIndex={0}
          role="application"
          aria-label={props.label}
          onKeyDown={props.onKeyDown}
        >
          <canvas ref={canvas} aria-hidden="true" />
          {hovered && <Tooltip {...{ hovered, names, windowPs, pointer, surfaceWidth: width }} />}
          {selection && (
            <span
              class="selection-length figures"
              style={{ left: `${Math.max(0, scale.x(selection.start_ps))}px`, top: `${top + 2}px` }}
            >
              {seconds(selection.end_ps - selection.start_ps)}
            </span>
          )}
          {!layout && <p class="timeline-message">{props.error ?? "Reading the timeline …"}</p>}
        </div>
      </div>
    </div>
  );
}

/** How far the lanes are scrolled, and how much of them is visible; on paper all of them are. */
function useScrolled(scroller: RefObject<HTMLElement | null>): { top: number; visible: number } {
  const [state, setState] = useState({ top: 0, visible: 0 });
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const read = () => setState({ top: element.scrollTop, visible: element.clientHeight });
    const readAll = () => setState({ top: 0, visible: element.scrollHeight });
    const observer = new ResizeObserver(() => {
      if (element.clientHeight > 0) read(); // TensorBoard hides the page for another tab
    });
    observer.observe(element);
    element.addEventListener("scroll", read, { passive: true });
    window.addEventListener("beforeprint", readAll);
    window.addEventListener("afterprint", read);
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", read);
      window.removeEventListener("beforeprint", readAll);
      window.removeEventListener("afterprint", read);
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- a ref stays the same
  }, []);
  return state;
}

function showRow(element: HTMLElement, top: number, height: number): void {
  if (top < element.scrollTop) element.scrollTop = top;
  else if (top + height > element.scrollTop + element.clientHeight) {
    element.scrollTop = Math.min(top, top + height - element.clientHeight);
  }
}
