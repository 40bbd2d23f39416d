/** Lines of the user's own code that took time, as a capture saw them run. */

import { percent, seconds } from "../format";
import type { CodeLine, Report } from "../types";
import { Section } from "../ui/parts";
import { Swatch } from "../ui/stacked_bar";
import { FlameGraphs } from "./flame_graph";

const LEAST_SHARE = 0.005; // of the window; a smaller cost is not worth a line
const MOST_SHOWN = 8;

export function CodeLines({ report }: { report: Report }) {
  const windowPs = report.window.duration_ps;
  const shown = report.lines.filter(({ ps }) => ps >= LEAST_SHARE * windowPs);
  if (shown.length === 0 && !report.stacks) return null;
  return (
    <Section id="code" title="Where in your code">
      <ul class="code-lines">
        {shown.slice(0, MOST_SHOWN).map((line) => (
          <li key={`${line.cause} ${line.name} ${line.path}:${line.line}`}>
            <Swatch bucket={line.bucket} />
            <CodeLineOf line={line} share={percent(line.ps, windowPs)} />
          </li>
        ))}
      </ul>
      {report.stacks && <FlameGraphs stacks={report.stacks} />}
    </Section>
  );
}

/** `train.py:25 load`, what it took, and the line itself. */
export function CodeLineOf({ line, share }: { line: CodeLine; share?: string }) {
  const file = line.path.replaceAll("\\", "/").split("/").pop();
  return (
    <div class="code-line">
      <strong title={line.path}>
        {file}:{line.line} {line.function}
      </strong>{" "}
      <span class="figures">{seconds(line.ps)}</span>{" "}
      <span class="faint">
        {share && `(${share}) `}
        {line.cause}
        {line.background && ", in the background while training waited"}
      </span>
      {line.source && (
        <pre class="stack" tabIndex={0} aria-label={`line ${line.line} of ${file}`}>
          {line.source}
        </pre>
      )}
    </div>
  );
}
