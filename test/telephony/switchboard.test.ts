import net from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { lineSchema } from "../../src/telephony/line.js";
import { Switchboard, type SwitchboardParts } from "../../src/telephony/switchboard.js";

const open: Switchboard[] = [];
afterEach(() => {
  for (const switchboard of open.splice(0)) switchboard.destroy();
});

async function started(port: number) {
  const logged: string[] = [];
  const note = (message: string, fields?: { readonly reason?: string; readonly line?: string }) =>
    logged.push(`${message}: ${fields?.reason}`);
  const line = lineSchema.parse({ name: "calls", scope: "default", dialect: "audiosocket", port });
  const switchboard = new Switchboard({
    lines: [line],
    exchangeOf: () => ({}) as ReturnType<SwitchboardParts["exchangeOf"]>,
    log: { info: note, warn: note, error: note },
    publicUrl: () => "http://127.0.0.1",
    idleSeconds: 20,
  });
  open.push(switchboard);
  await switchboard.start();
  return { logged, port: switchboard.ports.get("calls")! };
}

test("an AudioSocket connection that cannot be accepted is logged each time, and the line stays open", async () => {
  const made = vi.spyOn(net, "createServer");
  const { logged, port } = await started(0);
  const server = made.mock.results[0]!.value as net.Server;
  made.mockRestore();
  // As Node reports it.
  for (let i = 0; i < 2; i++) server.emit("error", new Error("accept EMFILE"));
  expect(logged).toEqual(Array(2).fill("a call could not be accepted: accept EMFILE"));
  const caller = net.connect(port, "127.0.0.1");
  await new Promise((connected) => caller.once("connect", connected));
  caller.destroy();
});

test("a port that is in use is an error of the start", async () => {
  const { port } = await started(0);
  await expect(started(port)).rejects.toThrow("EADDRINUSE");
});
