import type { Readable } from "node:stream";

/** Errors of a body that is too large, or ends too early. */
export interface BodyFaults {
  tooLarge(): Error;
  brokenOff(cause?: unknown): Error;
}

/** Uses events: iterating over a small body costs more than the rest of the call. */
export function wholeBody(source: Readable, limit: number, faults: BodyFaults): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (source.destroyed) return reject(faults.brokenOff());
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    const refuse = (error: Error) => {
      source.off("data", keep);
      reject(error);
    };
    const keep = (chunk: Uint8Array) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > limit) refuse(faults.tooLarge());
    };
    source.on("data", keep);
    source.once("error", (error) => refuse(faults.brokenOff(error)));
    const closed = () => refuse(faults.brokenOff());
    source.once("close", closed);
    source.once("end", () => {
      // Every body is closed in the end: creating an error for each would cost more than reading it.
      source.off("close", closed);
      resolve(Buffer.concat(chunks));
    });
  });
}
