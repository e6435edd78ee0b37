// A box as shipped, with tokens, in a separate process. Argument: its configuration as JSON. Reports over IPC its address, its memory and its
// open descriptors.
import { readdirSync, readlinkSync } from "node:fs";
import { configSchema } from "../../dist/server/config.js";
import { startBox } from "../../dist/server/start.js";

const box = await startBox(configSchema.parse(JSON.parse(process.argv[2])));
function targetOf(descriptor) {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return "closed meanwhile";
  }
}
const handlers = {
  state() {
    globalThis.gc?.();
    const { rss, heapUsed, arrayBuffers } = process.memoryUsage();
    const open = process.platform === "linux" ? readdirSync("/proc/self/fd").map(targetOf) : [];
    const sockets = open.filter((target) => target.startsWith("socket:")).length;
    return { rssMb: rss / 2 ** 20, liveMb: (heapUsed + arrayBuffers) / 2 ** 20, descriptors: open.length, sockets };
  },
  jumpQuarter: () => globalThis.jumpClock(91),
  stop: () => box.stop(),
};
process.on("message", async ({ id, name }) => {
  process.send({ id, value: await handlers[name]() });
  if (name === "stop") process.disconnect();
});
process.on("disconnect", () => process.exit());
process.send({ url: box.url, application: box.firstApplication, owner: box.firstOwner });
