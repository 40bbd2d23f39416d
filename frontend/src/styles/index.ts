/** The style sheets in the order in which they apply. */

import base from "./base.css";
import media from "./media.css";
import run from "./run.css";
import tables from "./tables.css";
import timeline from "./timeline.css";

export const styles = [base, run, timeline, tables, media].join("\n");
