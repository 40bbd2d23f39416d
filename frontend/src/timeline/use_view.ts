/** The view as state: jumps glide, so that the eye can follow where they lead. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Ps, Span } from "../types";
import { clamped, onTheWay, whole } from "./view";

const GLIDE_MS = 260;

export interface ViewState {
  view: Span;
  setView: (view: Span) => void;
  glideTo: (view: Span) => void;
}

export function useView(windowPs: Ps, initial: Span | null): ViewState {
  const [view, setState] = useState<Span>(() => clamped(initial ?? whole(windowPs), windowPs));
  const current = useRef(view);
  const frame = useRef(0);
  useEffect(() => () => cancelAnimationFrame(frame.current), []);

  const show = (next: Span) => {
    current.current = clamped(next, windowPs);
    setState(current.current);
  };
  const setView = (next: Span) => {
    cancelAnimationFrame(frame.current);
    show(next);
  };
  const glideTo = (next: Span) => {
    cancelAnimationFrame(frame.current);
    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) return show(next);
    const [from, to] = [current.current, clamped(next, windowPs)];
    const began = performance.now();
    const glide = (time: number) => {
      const progress = Math.min(1, Math.max(0, (time - began) / GLIDE_MS));
      show(progress === 1 ? to : onTheWay(from, to, progress));
      if (progress < 1) frame.current = requestAnimationFrame(glide);
    };
    frame.current = requestAnimationFrame(glide);
  };
  return { view, setView, glideTo };
}
