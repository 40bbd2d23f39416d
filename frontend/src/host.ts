/**
 * The page around ours: TensorBoard's window, or none for the one-file report. Reaching
 * into the parent can fail (another origin, a sandbox), and then the page is on its own.
 */

/** TensorBoard's document, if we may look at it. */
function parentWindow(): Window | null {
  try {
    return window.parent !== window && window.parent.document.body ? window.parent : null;
  } catch {
    return null;
  }
}

const hostWindow = parentWindow();
const linkWindow = hostWindow ?? window;

// ---------------------------------------------------------------- theme

/** Calls back now and whenever the theme changes. Paper is light. */
export function watchTheme(call: (isDark: boolean) => void): void {
  const preference = window.matchMedia("(prefers-color-scheme: dark)");
  const body = hostWindow?.document.body;
  const isDark = () => (body ? body.classList.contains("dark-mode") : preference.matches);
  const read = () => call(isDark());
  if (body) new MutationObserver(read).observe(body, { attributeFilter: ["class"] });
  else preference.addEventListener("change", read);
  window.addEventListener("beforeprint", () => call(false));
  window.addEventListener("afterprint", read);
  read();
}

// ---------------------------------------------------------------- deep links

export function readHash(): string {
  return linkWindow.location.hash;
}

/** Replaces the entry, so that zooming does not fill the history; TensorBoard sees no hashchange. */
export function writeHash(hash: string): void {
  if (hash !== linkWindow.location.hash) {
    linkWindow.history.replaceState(linkWindow.history.state, "", hash);
  }
}

export function watchHash(call: () => void): () => void {
  linkWindow.addEventListener("hashchange", call);
  return () => linkWindow.removeEventListener("hashchange", call);
}

// ---------------------------------------------------------------- reloads

interface HostMessage {
  type: string;
  id: number;
  isReply: boolean;
}

/**
 * Calls back when TensorBoard has read its logs again. TensorBoard's plugin protocol: a port is
 * posted to the parent, messages are JSON text, and each one wants a reply.
 */
export function watchReload(call: () => void): void {
  if (!hostWindow) return;
  const { port1: ours, port2: theirs } = new MessageChannel();
  ours.onmessage = (event: MessageEvent<string>) => {
    const message = JSON.parse(event.data) as HostMessage;
    if (message.isReply) return;
    const { type, id } = message;
    ours.postMessage(JSON.stringify({ type, id, payload: null, error: null, isReply: true }));
    if (type === "experimental.DataReloaded" || type === "experimental.RunsChanged") call();
  };
  hostWindow.postMessage("experimental.bootstrap", "*", [theirs]);
}
