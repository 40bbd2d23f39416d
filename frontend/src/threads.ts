/** Threads of a process that a capture looked at, in words. Pure. */

import { counted } from "./format";
import type { Thread } from "./types";

/** "Thread-10 (worker) (and 1 like it)"; threads that TensorFlow created have no Python name. */
export function threadName({ name, count }: Thread): string {
  return `${name || "a TensorFlow thread"}${count > 1 ? ` (and ${count - 1} like it)` : ""}`;
}

/** "9 Python threads, in 8 places" */
export function threadsInShort(threads: readonly Thread[]): string {
  const all = threads.reduce((sum, { count }) => sum + count, 0);
  const places = all > threads.length ? `, in ${counted(threads.length, "place")}` : "";
  return `${counted(all, "Python thread")}${places}`;
}

/** The blamed ones first, then the main one, then the others in order. */
export function culpritFirst(threads: readonly Thread[]): Thread[] {
  const rank = ({ blamed, main }: Thread) => (blamed ? 0 : main ? 1 : 2);
  return [...threads].sort((a, b) => rank(a) - rank(b));
}

/** Which of its frames is the line to look at, the one that its place names; -1 if none is. */
export function frameOfPlace({ place, frames }: Thread): number {
  if (!place) return -1;
  return frames.findIndex((frame) => {
    const [where] = frame.split(" ", 1);
    return where!.replaceAll("\\", "/").endsWith(`/${place}`) || where === place;
  });
}
