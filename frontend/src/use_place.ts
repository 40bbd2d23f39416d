/** The place in the page, kept in the address so that it survives a reload and can be shared. */

import { useEffect, useState } from "preact/hooks";
import { readHash, watchHash, writeHash } from "./host";
import { type Place, hashForPlace, placeFromHash } from "./links";

export function usePlace(): [Place, (change: Partial<Place>) => void] {
  const [place, setPlace] = useState<Place>(() => placeFromHash(readHash()));
  useEffect(() => watchHash(() => setPlace(placeFromHash(readHash()))), []);
  const move = (change: Partial<Place>) =>
    setPlace((old) => {
      const next = { ...old, ...change };
      writeHash(hashForPlace(next, readHash()));
      return next;
    });
  return [place, move];
}
