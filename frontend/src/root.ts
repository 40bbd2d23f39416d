/** Where TensorBoard's own pages begin, whatever the path prefix: our page is data/plugin/stall/. */

export function rootUrl(base: string = document.baseURI): string {
  return new URL("../../../", base).href;
}
