/** Wheel, drag and keys on the lanes. */

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Ps, Span } from "../types";
import type { Direction } from "./chosen";
import { Scale, panned, whole, zoomed } from "./view";

const WHEEL_FACTOR = 1.0018; // per pixel of wheel: a notch of 100 zooms by a fifth
const KEY_ZOOM = 1.5;
const KEY_PAN = 0.15;
const DRAG_LEAST_PX = 4; // less than this is a click with an unsteady hand

export interface Pointer {
  x: number;
  y: number;
}

export interface Controls {
  pointer: Pointer | null;
  selection: Span | null;
  /** The wheel was turned over lanes that do not have the focus: it scrolls the page. */
  needsHint: boolean;
  onKeyDown: (event: KeyboardEvent) => void;
}

interface Wishes {
  setView: (view: Span) => void;
  onClick: (pointer: Pointer) => void;
  onDoubleClick: (pointer: Pointer) => void;
  onEscape: () => void;
  onNext: (by: 1 | -1) => void;
  /** To the event next to the chosen one; false if none is chosen. */
  onGo: (direction: Direction) => boolean;
  onRange: (range: Span) => void;
  onZoomIn: () => void;
}

export function useControls(
  surface: RefObject<HTMLElement | null>,
  view: Span,
  windowPs: Ps,
  width: number,
  wishes: Wishes,
): Controls {
  const [pointer, setPointer] = useState<Pointer | null>(null);
  const [selection, setSelection] = useState<Span | null>(null);
  const [needsHint, setNeedsHint] = useState(false);
  // Listeners are attached once; they read what is current from here.
  const now = useRef({ view, windowPs, width, wishes });
  now.current = { view, windowPs, width, wishes };

  useEffect(() => {
    const element = surface.current;
    if (!element) return;
    let pressedAt: { x: number; isPan: boolean; view: Span } | null = null;

    const position = (event: MouseEvent): Pointer => {
      const box = element.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };

    const onWheel = (event: WheelEvent) => {
      const { view, windowPs, width, wishes } = now.current;
      const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      const isMeant = event.ctrlKey || event.metaKey || document.activeElement === element;
      if (!isSideways && !isMeant) return setNeedsHint(true);
      event.preventDefault();
      setNeedsHint(false);
      const delta = (event.deltaY || event.deltaX) * (event.deltaMode === 1 ? 33 : 1);
      wishes.setView(
        isSideways
          ? panned(view, (event.deltaX || event.deltaY) / width, windowPs)
          : zoomed(view, position(event).x / width, WHEEL_FACTOR ** delta, windowPs),
      );
    };

    const onDown = (event: PointerEvent) => {
      if (event.button !== 0) return;
      element.setPointerCapture(event.pointerId);
      pressedAt = { x: position(event).x, isPan: event.shiftKey, view: now.current.view };
    };

    const onMove = (event: PointerEvent) => {
      const { windowPs, width, wishes } = now.current;
      const at = position(event);
      setPointer(at);
      if (!pressedAt || Math.abs(at.x - pressedAt.x) < DRAG_LEAST_PX) return;
      if (pressedAt.isPan) {
        wishes.setView(panned(pressedAt.view, (pressedAt.x - at.x) / width, windowPs));
      } else {
        setSelection(between(pressedAt.x, at.x, new Scale(pressedAt.view, width), windowPs));
      }
    };

    const onUp = (event: PointerEvent) => {
      const { windowPs, width, wishes } = now.current;
      const at = position(event);
      if (pressedAt && Math.abs(at.x - pressedAt.x) < DRAG_LEAST_PX) wishes.onClick(at);
      else if (pressedAt && !pressedAt.isPan) {
        wishes.onRange(between(pressedAt.x, at.x, new Scale(pressedAt.view, width), windowPs));
      }
      onCancel();
    };

    const onCancel = () => {
      pressedAt = null;
      setSelection(null);
    };
    const onLeave = () => {
      setPointer(null);
      setNeedsHint(false);
    };
    const onDouble = (event: MouseEvent) => now.current.wishes.onDoubleClick(position(event));

    const attached = new AbortController();
    const { signal } = attached;
    element.addEventListener("wheel", onWheel, { passive: false, signal });
    element.addEventListener("pointerdown", onDown, { signal });
    element.addEventListener("pointermove", onMove, { signal });
    element.addEventListener("pointerup", onUp, { signal });
    element.addEventListener("pointercancel", onCancel, { signal });
    element.addEventListener("pointerleave", onLeave, { signal });
    element.addEventListener("dblclick", onDouble, { signal });
    return () => attached.abort();
    // eslint-disable-next-line react-hooks/exhaustive-deps -- a ref stays the same
  }, []);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const zoom = (factor: number) => wishes.setView(zoomed(view, 0.5, factor, windowPs));
    const pan = (share: number) => wishes.setView(panned(view, share, windowPs));
    const keys: Record<string, () => unknown> = {
      ArrowLeft: () => wishes.onGo("left") || pan(-KEY_PAN),
      ArrowRight: () => wishes.onGo("right") || pan(KEY_PAN),
      ArrowUp: () => wishes.onGo("up"),
      ArrowDown: () => wishes.onGo("down"),
      Enter: wishes.onZoomIn,
      a: () => pan(-KEY_PAN),
      d: () => pan(KEY_PAN),
      "+": () => zoom(1 / KEY_ZOOM),
      "=": () => zoom(1 / KEY_ZOOM),
      w: () => zoom(1 / KEY_ZOOM),
      "-": () => zoom(KEY_ZOOM),
      s: () => zoom(KEY_ZOOM),
      0: () => wishes.setView(whole(windowPs)),
      Home: () => wishes.setView(whole(windowPs)),
      n: () => wishes.onNext(1),
      p: () => wishes.onNext(-1),
      Escape: wishes.onEscape,
    };
    const action = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  };

  return { pointer, selection, needsHint, onKeyDown };
}

function between(x: number, otherX: number, scale: Scale, windowPs: Ps): Span {
  const [start, end] = [scale.ps(Math.min(x, otherX)), scale.ps(Math.max(x, otherX))];
  return { start_ps: Math.max(0, start), end_ps: Math.min(windowPs, end) };
}
