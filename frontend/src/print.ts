/**
 * On paper, the page is scaled and not laid out again: its canvases were painted for the screen, and
 * what is on top of them would be misplaced.
 */

const PAPER_PX = 1040; // A4 on its side, without its margins

export function scaleForPaper(): void {
  window.addEventListener("beforeprint", () => {
    const zoom = Math.min(1, PAPER_PX / document.documentElement.clientWidth);
    document.documentElement.style.setProperty("--paper-zoom", String(zoom));
  });
}
