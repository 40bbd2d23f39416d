/** Through a long list, a page at a time. */

import type { RunsPage } from "../runs";

interface Props extends RunsPage {
  total: number;
  onPage: (page: number) => void;
}

export function Pager({ number, count, first, last, total, onPage }: Props) {
  if (count < 2) return null;
  return (
    <div class="pager" role="group" aria-label="Pages">
      <span class="button-group">
        <button
          type="button"
          aria-label="Previous page"
          disabled={number === 0}
          onClick={() => onPage(number - 1)}
        >
          ‹
        </button>
        <button
          type="button"
          aria-label="Next page"
          disabled={number === count - 1}
          onClick={() => onPage(number + 1)}
        >
          ›
        </button>
      </span>
      <span class="figures">
        {first.toLocaleString("en")}–{last.toLocaleString("en")} of {total.toLocaleString("en")}
      </span>
    </div>
  );
}
