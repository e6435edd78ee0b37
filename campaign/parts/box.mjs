import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

const PROCESS = fileURLToPath(new URL("./box-process.mjs", import.meta.url));
const CLOCK = new URL("./clock-speed.mjs", import.meta.url).href;

/** Starts a box in a separate process, with a clock `clockSpeed` times as fast. `started` has its address, `ask` sends it questions over IPC, `ended` has its exit. */
export function startBoxProcess(config, { env = {}, clockSpeed = 1 } = {}) {
  const clock = clockSpeed === 1 ? [] : ["--import", CLOCK];
  const child = fork(PROCESS, [JSON.stringify(config)], {
    execArgv: ["--expose-gc", ...clock],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: { ...process.env, ...env, CLOCK_SPEED: String(clockSpeed) },
  });
  let log = "";
  child.stderr.on("data", (chunk) => {
    log = (log + chunk).slice(-1_000_000);
  });
  const ended = new Promise((resolve) => child.once("close", (code, signal) => resolve({ code, signal, log })));
  const waiting = new Map();
  let asked = 0;
  const started = new Promise((resolve, reject) => {
    child.once("message", resolve);
    ended.then(({ code, signal }) => reject(new Error(`the box ended (${code ?? signal}): ${log.slice(-2000)}`)));
  });
  child.on("message", ({ id, value }) => {
    waiting.get(id)?.(value);
    waiting.delete(id);
  });
  const ask = (name) =>
    new Promise((resolve, reject) => {
      const id = ++asked;
      waiting.set(id, resolve);
      ended.then(() => reject(new Error("the box ended")));
      child.send({ id, name });
    });
  return { started, process: child, ask, ended, log: () => log };
}

export async function tokenOf(url, { clientId, clientSecret }) {
  const response = await fetch(`${url}/oauth2/token`, {
    method: "POST",
    headers: {
      authorization: `Basic ${Buffer.from(`${encodeURIComponent(clientId)}:${clientSecret}`).toString("base64")}`,
      "content-type": "application/x-www-form-urlencoded",
    },
    body: "grant_type=client_credentials&scope=bio",
  });
  const body = await response.json();
  if (!body.access_token) throw new Error(`no token: ${JSON.stringify(body)}`);
  return body.access_token;
}
