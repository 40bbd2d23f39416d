/** If one of our views fails, it says so instead of leaving an empty page. */

import type { ComponentChildren } from "preact";
import { useErrorBoundary } from "preact/hooks";

export function Guard({ children }: { children: ComponentChildren }) {
  const [fault, forget] = useErrorBoundary((error) => console.error(error));
  if (!fault) return <>{children}</>;
  return (
    <div class="state" role="alert">
      <h1>This page could not be shown</h1>
      <p>{String(fault)}</p>
      <p class="faint">
        This is a bug in Stall, not in your training. `stall-analyze` shows the same report in a
        terminal.
      </p>
      <button type="button" onClick={forget}>
        Try again
      </button>
    </div>
  );
}
