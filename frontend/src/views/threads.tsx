/** What every thread was doing when a capture last looked: equal stacks are shown once, the culprit first. */

import { culpritFirst, frameOfPlace, threadName, threadsInShort } from "../threads";
import type { Thread } from "../types";
import { Section } from "../ui/parts";

export function Threads({ threads }: { threads: readonly Thread[] }) {
  if (threads.length === 0) return null;
  const aside = <span class="faint">{threadsInShort(threads)}, as last seen</span>;
  return (
    <Section id="threads" title="Threads" aside={aside}>
      <ul class="threads">
        {culpritFirst(threads).map((thread, index) => (
          <ThreadItem key={index} thread={thread} />
        ))}
      </ul>
    </Section>
  );
}

function ThreadItem({ thread }: { thread: Thread }) {
  const { blamed, place, does, frames } = thread;
  return (
    <li class={blamed ? "thread blamed" : "thread"}>
      <details open={blamed}>
        <summary>
          <strong>{threadName(thread)}</strong>
          {blamed && <span class="thread-blame">holds up training</span>}
          {does && <span>{does}</span>}
          {place && <code>{place}</code>}
        </summary>
        {frames.length === 0 ? (
          <p class="faint">Its stack was not recorded.</p>
        ) : (
          <Frames frames={frames} at={frameOfPlace(thread)} name={threadName(thread)} />
        )}
      </details>
    </li>
  );
}

function Frames(props: { frames: readonly string[]; at: number; name: string }) {
  return (
    <pre class="stack" tabIndex={0} aria-label={`stack of ${props.name}, innermost first`}>
      {props.frames.map((frame, index) => (
        <span key={index} class={index === props.at ? "frame here" : "frame"}>
          {frame}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}
