/** The entry point: TensorBoard imports the module and calls render(); a file starts itself. */

import { render as renderInto } from "preact";
import { App } from "./app";
import { EMBEDDED_ID, chooseSource } from "./data/source";
import { scaleForPaper } from "./print";
import { styles } from "./styles";
import { Guard } from "./ui/guard";

export function render(): void {
  const sheet = new CSSStyleSheet(); // not an element: the one-file report forbids inline styles
  sheet.replaceSync(styles);
  document.adoptedStyleSheets.push(sheet);
  document.documentElement.lang = "en";
  document.title ||= "Stall";
  const root = document.createElement("div");
  root.id = "stall";
  document.body.append(root);
  scaleForPaper();
  const source = chooseSource(document);
  renderInto(
    <Guard>
      <App source={source} />
    </Guard>,
    root,
  );
}

if (document.getElementById(EMBEDDED_ID)) render();
