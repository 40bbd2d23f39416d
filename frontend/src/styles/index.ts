/** The style sheets in the order in which they apply. */

import base from "./base.css";
import changes from "./changes.css";
import fleet from "./fleet.css";
import media from "./media.css";
import pieces from "./pieces.css";
import run from "./run.css";
import tables from "./tables.css";
import timeline from "./timeline.css";

export const styles = [base, pieces, run, changes, timeline, tables, fleet, media].join("\n");
