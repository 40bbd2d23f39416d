/** Which of the user's lines an event is about, as far as the logs tell. Pure. */

import type { CodeLine, EventAnswer } from "../types";

const LIBRARIES = /site-packages|dist-packages|[/\\]lib[/\\]python|^<frozen|tensorflow|keras/;

/** The Python tracer writes `$train.py:25 load`: the innermost one outside of libraries. */
export function lineBelow({ name, around }: EventAnswer): string | null {
  const frames = [...around, name].filter((frame) => frame.startsWith("$"));
  const own = frames.map((frame) => frame.slice(1)).filter((frame) => !LIBRARIES.test(frame));
  return own.at(-1) ?? null;
}

/** From a capture: the line that took most of the time of the cause at that event. */
export function lineOfCause({ causes }: EventAnswer, lines: readonly CodeLine[]): CodeLine | null {
  const [cause] = causes[0] ?? [];
  return lines.find((line) => line.cause === cause) ?? null;
}
