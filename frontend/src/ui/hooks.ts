/** Small hooks that several views need. */

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";

/** The width of an element: 0 before it is laid out, and its last width while it is hidden. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver(([entry]) => {
      const now = Math.floor(entry?.contentRect.width ?? 0);
      if (now > 0) setWidth(now); // TensorBoard hides the page while another tab is open
    });
    observer.observe(element.current);
    return () => observer.disconnect();
    // eslint-disable-next-line react-hooks/exhaustive-deps -- a ref stays the same
  }, []);
  return width;
}

/** Calls back once a value has stayed the same for a while. */
export function useSettled<Value>(
  value: Value,
  afterMs: number,
  call: (value: Value) => void,
): void {
  useEffect(() => {
    const timer = setTimeout(() => call(value), afterMs);
    return () => clearTimeout(timer);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- waits for the value alone
  }, [value]);
}
