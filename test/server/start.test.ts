/** A box as its operator starts, watches and stops it, with a stand-in for the engine. */
import { once } from "node:events";
import net, { type AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { VoiceprintsProcessor } from "../../src/processor/voiceprints-processor.js";
import { configSchema, type ServerConfigInput } from "../../src/server/config.js";
import { jsonLog } from "../../src/server/log.js";
import { LoadHistory } from "../../src/server/operator/load-history.js";
import { type Box, type FirstStart, startBox } from "../../src/server/start.js";
import { fixtureEngine } from "../processor/fixture-engine.js";

const boxes: Box[] = [];
afterEach(async () => {
  for (const box of boxes.splice(0)) await box.stop();
});

async function started(config: ServerConfigInput = {}, engine = fixtureEngine()) {
  const logged: Record<string, unknown>[] = [];
  const log = jsonLog("info", (line) => logged.push(JSON.parse(line)));
  const box = await startBox(configSchema.parse({ port: 0, store: "memory", ...config }), { engine, log });
  boxes.push(box);
  return { box, logged, about: (message: string) => logged.filter((line) => line.message === message) };
}

/** A server that holds a port. */
async function heldPort() {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, port: (server.address() as AddressInfo).port };
}

async function tokenOf({ url, firstApplication }: Box): Promise<string> {
  const { clientId, clientSecret } = firstApplication!;
  const response = await fetch(`${url}/oauth2/token`, {
    method: "POST",
    headers: { authorization: `Basic ${btoa(`${encodeURIComponent(clientId)}:${clientSecret}`)}` },
    body: new URLSearchParams({ grant_type: "client_credentials", scope: "bio" }),
  });
  return ((await response.json()) as { access_token: string }).access_token;
}

describe("the log", () => {
  it("has at most a hundred lines a minute about refused clients", async () => {
    const { box, about } = await started({ trustProxy: ["127.0.0.1"] });
    for (let i = 0; i < 110; i++) {
      const headers = { authorization: `Basic ${btoa(`nobody-${i}:x`)}`, "x-forwarded-for": `192.0.2.${i}` };
      const body = new URLSearchParams({ grant_type: "client_credentials", scope: "bio" });
      expect((await fetch(`${box.url}/oauth2/token`, { method: "POST", headers, body })).status).toBe(401);
    }
    expect(about("runtime client refused")).toHaveLength(100);
  });

  it("names address, model and kind of store, and warns if tokens are off", async () => {
    const { box, about } = await started();
    const engine = fixtureEngine();
    expect(about("listening")).toMatchObject([
      {
        address: box.url,
        model: engine.model.revision,
        calibration: engine.model.calibrationRevision,
        store: "memory",
      },
    ]);
    expect(about("tokens are off: anyone on this machine can use the service")).toEqual([]);
    const open = await started({ auth: { required: false } });
    expect(open.about("tokens are off: anyone on this machine can use the service")).toMatchObject([
      { level: "warn", address: open.box.url },
    ]);
    expect(open.box.firstApplication).toBeNull();
    expect(open.box.firstOwner).not.toBeNull();
  });
});

it("a box whose tokens come from elsewhere has no operator view and no token endpoint", async () => {
  const issuers = [{ issuer: "https://login.example", jwks: "https://login.example/keys", audience: "box" }];
  const { box } = await started({ auth: { ownIssuer: false, issuers } });
  expect(box).toMatchObject({ firstApplication: null, firstOwner: null, operatorUrl: null });
  for (const path of ["/operator/v1/box", "/oauth2/token"]) expect((await fetch(box.url + path)).status).toBe(404);
  expect(await securityOf(box)).toMatchObject({ type: "http", scheme: "bearer" });
});

async function securityOf({ url }: Box) {
  const { servers, components } = (await (await fetch(`${url}/openapi.json`)).json()) as {
    servers: { url: string }[];
    components: { securitySchemes: { bearer: object } };
  };
  expect(servers).toEqual([{ url }]);
  return components.securitySchemes.bearer;
}

it("a box with its own tokens describes where to get them, and its operator view is read-only but for profiles", async () => {
  const { Request: request, Response: response } = globalThis;
  const { box } = await started();
  expect(await securityOf(box)).toMatchObject({
    type: "oauth2",
    flows: { clientCredentials: { tokenUrl: `${box.url}/oauth2/token` } },
  });
  expect(box.operatorUrl).toBe(`${box.url}/operator/`);
  const asked = async (method: string, path: string) => {
    const { status, headers } = await fetch(box.url + path, { method, redirect: "manual" });
    return [status, headers.get("allow") ?? headers.get("location")];
  };
  expect(await asked("GET", "/operator")).toEqual([308, "/operator/"]);
  expect(await asked("GET", "/operator/v1/box")).toEqual([401, null]);
  for (const path of ["/operator", "/operator/v1/box", "/operator/v1/profiles/p"])
    expect(await asked("POST", path)).toEqual([405, "GET"]);
  expect(await asked("PUT", "/operator/v1/box")).toEqual([405, "GET"]);
  for (const [method, path] of [
    ["PUT", "/operator/v1/profiles/p/consent"],
    ["DELETE", "/operator/v1/profiles/p"],
  ] as const)
    expect(await asked(method, path)).toEqual([401, null]);
  // A program that starts a box keeps its own globals.
  expect(globalThis.Request).toBe(request);
  expect(globalThis.Response).toBe(response);
});

it.each([
  ["its own tokens", {}, [{ firstApplication: { scope: "default" }, firstOwner: { name: "owner" } }]],
  ["tokens off", { required: false }, [{ firstApplication: null, firstOwner: { name: "owner" } }]],
  [
    "tokens of another issuer",
    { ownIssuer: false, issuers: [{ issuer: "https://login.example", jwks: "/keys", audience: "box" }] },
    [],
  ],
])("the secrets of a first start with %s are handed over once, if there are any", async (_, auth, expected) => {
  const kept: FirstStart[] = [];
  const engine = fixtureEngine();
  const keepSecrets = async (first: FirstStart) => void kept.push(first);
  const config = configSchema.parse({ port: 0, store: "memory", auth });
  const box = await startBox(config, { engine, log: jsonLog("silent"), keepSecrets });
  boxes.push(box);
  expect(kept).toMatchObject(expected);
});

it("a stop closes what the box has opened, each once", async () => {
  const closed = vi.spyOn(VoiceprintsProcessor.prototype, "close");
  try {
    const { box, about } = await started();
    expect(await box.stop()).toBe(true);
    boxes.pop();
    expect(about("stopping")).toHaveLength(1);
    expect(closed).toHaveBeenCalledOnce();
  } finally {
    closed.mockRestore();
  }
});

it("a box that cannot start leaves no port open", async () => {
  const [own, line] = [await heldPort(), await heldPort()];
  own.server.close();
  await once(own.server, "close");
  const telephony = [{ name: "desk", dialect: "audiosocket" as const, scope: "default", port: line.port }];
  await expect(started({ port: own.port, telephony })).rejects.toThrow(/EADDRINUSE/);
  const [refused] = await once(net.connect(own.port, "127.0.0.1"), "error");
  expect(refused).toMatchObject({ code: "ECONNREFUSED" });
  await expect(started({ port: line.port })).rejects.toThrow(/EADDRINUSE/);
  line.server.close();
});

describe("in the background", () => {
  it("expired data is deleted every ten minutes; a failure is logged and ends nothing", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const expire = vi.spyOn(VoiceprintsProcessor.prototype, "expire").mockRejectedValue(new Error("the disk is full"));
    try {
      const { about } = await started();
      vi.advanceTimersByTime(599_999);
      expect(expire).not.toHaveBeenCalled();
      vi.advanceTimersByTime(1);
      expect(expire).toHaveBeenCalledOnce();
      await expect.poll(() => about("expired data could not be deleted")).toHaveLength(1);
      expect(about("expired data could not be deleted")[0]!.stack).toContain("the disk is full");
      await boxes.pop()!.stop();
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      expire.mockRestore();
      vi.useRealTimers();
    }
  });

  it("an engine without workers is logged once for each fault, and the box is not ready", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      let fault: string | null = null;
      const engine = Object.defineProperty(fixtureEngine(), "fault", { get: () => fault });
      const { box, about } = await started({}, engine);
      const sampled = vi.spyOn(LoadHistory.prototype, "sample");
      const reasons = () => about("the engine cannot start its workers").map(({ reason }) => reason);
      const readiness = async () => (await fetch(`${box.url}/readyz`)).status;
      vi.advanceTimersByTime(1000);
      // The queue is looked at, too.
      expect(sampled).toHaveBeenCalledOnce();
      expect([reasons(), await readiness()]).toEqual([[], 200]);
      fault = "no memory";
      vi.advanceTimersByTime(3000);
      expect([reasons(), await readiness()]).toEqual([["no memory"], 503]);
      fault = null;
      vi.advanceTimersByTime(1000);
      expect([reasons(), await readiness()]).toEqual([["no memory"], 200]);
      fault = "no memory";
      vi.advanceTimersByTime(1000);
      expect(reasons()).toEqual(["no memory", "no memory"]);
    } finally {
      vi.useRealTimers();
    }
  });

  it("a box whose engine has lost its model is not ready, and the log says why, once", async () => {
    const engine = fixtureEngine();
    const { threshold } = engine;
    const { box, about } = await started({}, engine);
    engine.threshold = () => {
      throw new Error("the worker is gone", { cause: new Error("out of memory") });
    };
    for (const _ of [1, 2]) {
      const response = await fetch(`${box.url}/readyz`);
      expect([response.status, await response.text()]).toEqual([503, "not ready\n"]);
    }
    expect(about("not ready").map(({ reason }) => reason)).toEqual(["the worker is gone: out of memory"]);
    engine.threshold = threshold;
    for (const _ of [1, 2]) expect((await fetch(`${box.url}/readyz`)).status).toBe(200);
    expect(about("ready again")).toHaveLength(1);
  });
});

describe("telephone lines", () => {
  const basic = { user: "pbx", password: "correct horse" };
  const telephony = [
    { name: "desk", dialect: "audiosocket" as const, scope: "default", port: 0 },
    { name: "foreign", dialect: "audiosocket" as const, scope: "elsewhere", port: 0 },
    { name: "web", dialect: "jambonz" as const, scope: "default", ...basic },
    { name: "hook", dialect: "freeswitch" as const, scope: "default", ...basic },
  ];

  it("take announcements of clients that are bound to their scope", async () => {
    const { box, logged } = await started({ telephony });
    const authorization = `Bearer ${await tokenOf(box)}`;
    const announce = async (line: string, body: string, headers: Record<string, string> = { authorization }) => {
      const response = await fetch(`${box.url}/telephony/${line}/calls`, { method: "POST", body, headers });
      return {
        status: response.status,
        id: response.headers.get("x-request-id"),
        ...((await response.json()) as object),
      };
    };
    expect(await announce("desk", '{"from":"+49"}')).toMatchObject({
      uuid: expect.any(String),
      port: expect.any(Number),
    });
    expect(await announce("desk", "{}", { "x-request-id": "mine" })).toMatchObject({
      status: { statusCode: "NOT_AUTHORIZED" },
    });
    expect((await announce("desk", "{}", { "x-request-id": "mine" })).id).toBe("mine");
    expect(await announce("foreign", "{}")).toMatchObject({
      status: {
        statusCode: "PERMISSION_DENIED",
        message: "the token does not include the scope of this line; bind its client to that scope",
      },
    });
    expect(await announce("desk", "[]")).toMatchObject({ status: { statusCode: "BAD_REQUEST" } });
    expect(await announce("desk", '{"from":"+49"}'.padEnd(65_536))).toHaveProperty("uuid");
    expect(await announce("desk", '{"from":"+49"}'.padEnd(65_537))).toMatchObject({
      status: { statusCode: "TOO_LARGE" },
    });
    expect(await announce("nobody", "{}")).toMatchObject({ status: { statusCode: "NOT_FOUND" } });
    expect(await announce("web", "{}")).toMatchObject({ status: { statusCode: "NOT_FOUND" } });
    expect(logged.filter(({ level }) => level === "error")).toEqual([]);
    const refused = { message: "call", operation: "Listen", protocol: "telephony", address: expect.any(String) };
    expect(logged).toContainEqual(
      expect.objectContaining({ ...refused, requestId: "mine", status: "NOT_AUTHORIZED", reason: expect.any(String) }),
    );
    expect([...box.linePorts.keys()]).toEqual(["desk", "foreign"]);
  });

  it("have a path for WebSockets each, and speak the subprotocol of their dialect only", async () => {
    const { box } = await started({ telephony });
    const authorization = `Basic ${btoa(`${basic.user}:${basic.password}`)}`;
    const protocolAt = async (line: string, offered: string[]) => {
      const url = `${box.url.replace("http", "ws")}/telephony/${line}`;
      const socket = new WebSocket(url, offered, { headers: { authorization } });
      socket.on("error", () => {});
      const protocol = await new Promise((resolve) => {
        socket.on("open", () => resolve(socket.protocol));
        socket.on("close", () => resolve("refused"));
      });
      socket.terminate();
      return protocol;
    };
    expect(await protocolAt("web", ["other", "audio.jambonz.org"])).toBe("audio.jambonz.org");
    expect(await protocolAt("web", ["other"])).toBe("refused");
    expect(await protocolAt("hook", [])).toBe("");
    expect(await protocolAt("desk", [])).toBe("refused");
  });

  it("log who was refused, and why", async () => {
    const { box, logged } = await started({ telephony });
    const socket = new WebSocket(`${box.url.replace("http", "ws")}/telephony/hook`, {
      headers: { authorization: "x" },
    });
    await once(socket, "error");
    const line = { message: "call", protocol: "telephony", address: "127.0.0.1", status: "NOT_AUTHORIZED" };
    const refused = logged.filter(({ message }) => message === "call");
    expect(refused).toMatchObject([{ ...line, reason: expect.stringContaining("user name and password") }]);
    expect(await (await fetch(`${box.url}/metrics`)).text()).toMatch(
      /vivavoce_call_seconds_count{[^}]*protocol="telephony"[^}]*status="NOT_AUTHORIZED"[^}]*} 1\n/,
    );
  });
});
