// A box in a process of its own, as it is shipped, with tokens. Arguments: its configuration as JSON. Says over IPC where it listens, and
// what only it knows: its memory and its open descriptors.
import { readdirSync } from "node:fs";
import { configSchema } from "../../dist/server/config.js";
import { startBox } from "../../dist/server/start.js";

const box = await startBox(configSchema.parse(JSON.parse(process.argv[2])));
const handlers = {
  state() {
    globalThis.gc?.();
    const { rss, heapUsed, arrayBuffers } = process.memoryUsage();
    const descriptors = process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0;
    return { rssMb: rss / 2 ** 20, liveMb: (heapUsed + arrayBuffers) / 2 ** 20, descriptors };
  },
  stop: () => box.stop(),
};
process.on("message", async ({ id, name }) => {
  process.send({ id, value: await handlers[name]() });
  if (name === "stop") process.disconnect();
});
process.on("disconnect", () => process.exit());
process.send({ url: box.url, application: box.firstApplication, owner: box.firstOwner });
