/** A process without free descriptors cannot start ffmpeg, and must survive that. */
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";

const script = `
import { openSync } from "node:fs";
import { toWav } from "./dist/audio/to-wav.js";
try { for (;;) openSync("/dev/null"); } catch {}
const mp3 = Uint8Array.of(0x49, 0x44, 0x33, ...new Array(500).fill(7));
await toWav(mp3).catch(({ code }) => console.log(code));
`;

test("a recording that cannot be decoded for lack of descriptors is an error of this call, not the end of the process", () => {
  const limited = 'ulimit -n 64; exec "$0" --input-type=module -e "$1"';
  const said = execFileSync("sh", ["-c", limited, process.execPath, script], { encoding: "utf8", timeout: 30_000 });
  expect(said.trim()).toBe("EMFILE");
});
