/** A run that is the log directory itself has no name there: the folder's name is used. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { runName } from "../runs";

export const LogdirContext = createContext("");

export function useRunName(): (run: string) => string {
  const logdir = useContext(LogdirContext);
  return (run) => runName(run, logdir);
}
