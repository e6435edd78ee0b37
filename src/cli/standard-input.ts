import { buffer } from "node:stream/consumers";

/** All of standard input as text, without the final line break. */
export const readStandardInput = async (): Promise<string> =>
  (await buffer(process.stdin)).toString("utf8").replace(/\r?\n$/, "");
