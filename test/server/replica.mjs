// Starts one replica in a separate process, so that a test can kill it. Argument: the configuration as JSON.
// Prints one line of JSON: the address, and the application of a first start.
import { createServer } from "vite";

const vite = await createServer({
  root: new URL("../..", import.meta.url).pathname,
  configFile: false,
  appType: "custom",
  logLevel: "error",
  server: { middlewareMode: true, ws: false, watch: null },
  optimizeDeps: { noDiscovery: true },
});
const { startReplica } = await vite.ssrLoadModule("/test/server/replica.ts");
const box = await startReplica(JSON.parse(process.argv[2]));
process.on("SIGTERM", async () => {
  const clean = await box.stop();
  process.exit(clean ? 0 : 1);
});
console.log(JSON.stringify({ url: box.address, application: box.firstApplication }));
