/**
 * On paper the page is scaled rather than laid out anew: its canvases were painted for the screen,
 * and what lies on them would lose its place.
 */

const PAPER_PX = 1040; // A4 on its side, without its margins

export function scaleForPaper(): void {
  window.addEventListener("beforeprint", () => {
    const zoom = Math.min(1, PAPER_PX / document.documentElement.clientWidth);
    document.documentElement.style.setProperty("--paper-zoom", String(zoom));
  });
}
