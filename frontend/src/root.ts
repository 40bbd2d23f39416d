/** Where TensorBoard's own pages begin, whatever its path prefix: ours is data/plugin/stall/. */

export function rootUrl(base: string = document.baseURI): string {
  return new URL("../../../", base).href;
}
