import { v7 } from "uuid";
import type { Clock, Ids } from "./dependencies.js";

/** A clock that is set back by less than this keeps the order of ids. */
const SMALL_STEP_MS = 10_000;

/**
 * UUIDs of version 7, in the order in which they are made. After the clock was ahead, they follow it back: lists and
 * searches by time look for an id where its time is.
 */
export function newIds(clock: Clock): Ids {
  let [at, count] = [0, 0];
  return {
    next() {
      const now = clock.now();
      if (now > at || now < at - SMALL_STEP_MS) {
        at = now;
        // Less than half of what it can hold, so that it does not overflow.
        count = crypto.getRandomValues(new Uint32Array(1))[0]! >>> 1;
      } else count++;
      return v7({ msecs: at, seq: count });
    },
  };
}
