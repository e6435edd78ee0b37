/** What a browser's storage refuses, as errors of a store: the browser's own words say neither what was lost nor what to do. */
import { StoreError, type StoreErrorCode } from "../errors.js";

const faults: Readonly<Record<string, readonly [StoreErrorCode, string]>> = {
  QuotaExceededError: [
    "disk-full",
    "the browser's storage for this page is full, so nothing was written; free some disk space or erase data of this page",
  ],
  AbortError: ["unavailable", "the browser stopped the transaction, so nothing was written; try again"],
  UnknownError: ["unavailable", "the browser cannot read or write its storage; try again or restart the browser"],
  InvalidStateError: [
    "closed",
    "the browser closed the store, because its data was cleared or a newer page opened it; reload the page",
  ],
};

const openingFaults: typeof faults = {
  ...faults,
  VersionError: ["newer-schema", "this store was written by a newer vivavoce; reload the page or update"],
  SecurityError: ["unavailable", "the browser does not let this page store data; allow site data (cookies) for it"],
  // Private windows of some browsers.
  InvalidStateError: ["unavailable", "the browser does not let this page store data; use a window that is not private"],
};

function faultOf(error: unknown, known: typeof faults): unknown {
  const [code, message] = (error instanceof Error && known[error.name]) || [];
  return code && message ? new StoreError(code, message, { cause: error }) : error;
}

export const openingFault = (error: unknown): unknown => faultOf(error, openingFaults);
export const storeFault = (error: unknown): unknown => faultOf(error, faults);
