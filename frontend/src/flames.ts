/** From sampled stacks to the boxes of a flame graph: what called what, as wide as it cost. */

import type { Bucket, Ps, RangeAnswer, Stacks } from "./types";

const NARROWEST = 0.003; // of the graph: a narrower box cannot be seen

export interface Flame {
  /** Index into `frames`; -1 for everything. */
  frame: number;
  ps: Ps;
  children: Flame[];
}

export interface Box {
  flame: Flame;
  /** Shares of the graph's width. */
  left: number;
  width: number;
  depth: number;
}

/** The stacks of a bucket as a tree, without the frames that all of them begin with. */
export function flamesOf(stacks: Stacks, bucket: Bucket): Flame {
  const root: Flame = { frame: -1, ps: 0, children: [] };
  for (const stack of stacks.stacks) {
    if (stack.bucket !== bucket) continue;
    root.ps += stack.ps;
    let at = root;
    for (const frame of stack.frames) {
      let child = at.children.find((known) => known.frame === frame);
      if (!child) at.children.push((child = { frame, ps: 0, children: [] }));
      child.ps += stack.ps;
      at = child;
    }
  }
  return { ...root, children: pastTheTrunk(root, new Set(stacks.users)).children };
}

/** The same for a range of the timeline; frames are indices into the list. */
export function flamesOfRange(nodes: RangeAnswer["flames"]): Flame {
  const root: Flame = { frame: -1, ps: 0, children: [] };
  const all: Flame[] = [];
  nodes.forEach(([around, , ps], frame) => {
    const flame = { frame, ps, children: [] };
    all.push(flame);
    (all[around] ?? root).children.push(flame);
    if (around < 0) root.ps += ps;
  });
  return root;
}

/** The innermost frame before stacks differ. If they never do, the user's last line is kept. */
function pastTheTrunk(root: Flame, users: ReadonlySet<number>): Flame {
  let at = root;
  let beforeUsers: Flame | null = null;
  for (;;) {
    const [only, ...others] = at.children;
    if (!only || others.length > 0 || only.ps < at.ps) return at;
    if (users.has(only.frame)) beforeUsers = at;
    if (only.children.length === 0) return beforeUsers ?? at;
    at = only;
  }
}

/** Widest first in each row, below its caller. */
export function boxesOf(root: Flame): Box[] {
  const boxes: Box[] = [];
  const place = (flame: Flame, left: number, depth: number) => {
    const width = root.ps > 0 ? flame.ps / root.ps : 0;
    if (width < NARROWEST) return;
    boxes.push({ flame, left, width, depth });
    let next = left;
    for (const child of [...flame.children].sort((a, b) => b.ps - a.ps)) {
      place(child, next, depth + 1);
      next += child.ps / root.ps;
    }
  };
  place(root, 0, 0);
  return boxes;
}
