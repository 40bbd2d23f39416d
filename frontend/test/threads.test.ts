import { describe, expect, it } from "vitest";
import { culpritFirst, frameOfPlace, threadName, threadsInShort } from "../src/threads";
import type { Thread } from "../src/types";
import { reportOf } from "./samples";

function thread(change: Partial<Thread> = {}): Thread {
  return { ...reportOf("stuck_job").threads[0]!, ...change };
}

describe("threads", () => {
  it("are called by their name, and counted where several stand in one place", () => {
    expect(threadName(thread({ name: "MainThread", count: 1 }))).toBe("MainThread");
    expect(threadName(thread({ name: "", count: 3 }))).toBe("a TensorFlow thread (and 2 like it)");
  });

  it("are summed up in threads and places", () => {
    const threads = [thread({ count: 2 }), thread({ count: 1 })];
    expect(threadsInShort(threads)).toBe("3 Python threads, in 2 places");
    expect(threadsInShort(threads.slice(1))).toBe("1 Python thread");
  });

  it("stand in the order of guilt: who is blamed, the main one, the others", () => {
    const other = thread({ name: "other", blamed: false, main: false });
    const main = thread({ name: "main", blamed: false, main: true });
    const blamed = thread({ name: "blamed", blamed: true, main: false });
    expect(culpritFirst([other, main, blamed]).map(({ name }) => name)).toEqual([
      "blamed",
      "main",
      "other",
    ]);
  });

  it("have one frame to look at: the one that their place names", () => {
    const frames = ["/usr/lib/queue.py:171 get", "/home/me/data.py:12 batches"];
    expect(frameOfPlace(thread({ frames, place: "data.py:12" }))).toBe(1);
    expect(frameOfPlace(thread({ frames, place: "a.py:12" }))).toBe(-1);
    expect(frameOfPlace(thread({ frames, place: "" }))).toBe(-1);
  });
});
