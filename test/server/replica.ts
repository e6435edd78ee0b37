import { createServer } from "node:net";
import { configSchema, type ServerConfigInput } from "../../src/server/config.js";
import { jsonLog } from "../../src/server/log.js";
import { startBox } from "../../src/server/start.js";
import { fixtureEngine } from "../processor/fixture-engine.js";

/** A box on the fixture engine; `address` is where this process listens, whatever its public address. */
export async function startReplica(config: ServerConfigInput) {
  const port = await freePort();
  const box = await startBox(configSchema.parse({ ...config, port }), {
    engine: fixtureEngine(),
    log: jsonLog("error"),
  });
  return { ...box, address: `http://127.0.0.1:${port}` };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
