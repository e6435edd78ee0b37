import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it, test, vi } from "vitest";
import { connect, connectVoiceprints } from "../../src/client/index.js";
import { StatusCode, StatusError } from "../../src/contract/index.js";
import { openVoiceprints } from "../../src/index.js";
import { configSchema } from "../../src/server/config.js";
import { curlLines } from "../../src/server/first-run.js";
import { closedGuard } from "../../src/server/guard.js";
import { jsonLog } from "../../src/server/log.js";
import { OpenModels } from "../../src/server/open-models.js";
import { type Box, startBox } from "../../src/server/start.js";
import { fixtureEngine, rateHz, take as sound } from "../processor/fixture-engine.js";
import { wav } from "../voice.js";
import { type ContractClient, overGrpc, overHttp } from "./contract-client.js";
import { endToEnd } from "./end-to-end.js";
import { openSession, type Takes } from "./workflows.js";

/** Each take is a little longer, so that every recording is different. */
const takes: Takes = (speaker, take) => wav(sound(speaker, 3 + take / 10), rateHz);

const run = promisify(execFile);
let folder: string;
let box: Box;
let token: string;
const logged: string[] = [];

const FOREIGN = "https://issuer.example.com";
const foreignKeys = generateKeyPair("ES256");
const forgedKeys = generateKeyPair("ES256");

async function foreignToken(
  claims: Record<string, unknown>,
  { expires = "5m", keys = foreignKeys } = {},
): Promise<string> {
  return new SignJWT({ scope: "bio", voice_scopes: ["default"], client_id: "abroad", ...claims })
    .setProtectedHeader({ alg: "ES256", kid: "k1" })
    .setIssuer(FOREIGN)
    .setAudience("voice")
    .setIssuedAt()
    .setExpirationTime(expires)
    .sign((await keys).privateKey);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "vivavoce-box-"));
  const jwks = join(folder, "jwks.json");
  await writeFile(
    jwks,
    JSON.stringify({ keys: [{ ...(await exportJWK((await foreignKeys).publicKey)), kid: "k1", alg: "ES256" }] }),
  );
  const config = configSchema.parse({
    port: 0,
    store: "memory",
    auth: { issuers: [{ issuer: FOREIGN, jwks, audience: "voice", scopesClaim: "voice_scopes" }] },
  });
  box = await startBox(config, { engine: fixtureEngine(), log: jsonLog("info", (line) => logged.push(line)) });
  const { clientId, clientSecret } = box.firstApplication!;
  const response = await fetch(`${box.url}/oauth2/token`, {
    method: "POST",
    headers: { authorization: `Basic ${btoa(`${encodeURIComponent(clientId)}:${clientSecret}`)}` },
    body: new URLSearchParams({ grant_type: "client_credentials", scope: "bio" }),
  });
  token = ((await response.json()) as { access_token: string }).access_token;
});
afterAll(async () => {
  await box?.stop();
  await rm(folder, { recursive: true });
});

describe.each(["gRPC", "HTTP"])("the workflows over %s, with a token", (protocol) => {
  let client: ContractClient;
  beforeAll(() => {
    client =
      protocol === "gRPC"
        ? overGrpc(box.url, () => token)
        : overHttp(
            () => box.url,
            () => token,
          );
  });
  afterAll(() => client.close());

  endToEnd(() => client, takes, protocol);
});

test("the first application may request every runtime scope", async () => {
  const { clientId, clientSecret } = box.firstApplication!;
  const scope = "asr asr.wordset nlu nlu.wordset dlg tts log bio";
  const response = await fetch(`${box.url}/oauth2/token`, {
    method: "POST",
    headers: { authorization: `Basic ${btoa(`${encodeURIComponent(clientId)}:${clientSecret}`)}` },
    body: new URLSearchParams({ grant_type: "client_credentials", scope }),
  });
  expect(await response.json()).toMatchObject({ scope, expires_in: 900 });
});

describe("the lines that a first start prints", () => {
  it("get a token, enroll a voice and verify it when pasted into a shell, also a second time", async () => {
    const voices = join(folder, "voices");
    await mkdir(voices);
    for (let i = 1; i <= 4; i++) await writeFile(join(voices, `ada-${i}.wav`), takes(100, i));
    await writeFile(join(voices, "bob-1.wav"), takes(200, 1));
    const [first, ...lines] = curlLines(box.url, box.firstApplication!, voices).split("\n");
    expect(first).toBe(`npx vivavoce demo --wav ${voices}`);
    for (let paste = 0; paste < 2; paste++) {
      const { stdout, stderr } = await run("sh", ["-c", lines.join("\n")]);
      expect(stderr).toBe("");
      const [one, two, three, trained, same, other] = stdout.trim().split("\n");
      for (const enrolled of [one, two, three]) expect(enrolled).toContain("ENROLL_REASON_ENROLL_OK");
      expect(trained).toContain("TRAIN_STATUS_TRAINED");
      expect(same).toContain("DECISION_AUTHENTIC");
      expect(other).toContain("DECISION_NO_MATCH");
    }
  });
});

describe("the guard", () => {
  const status = async (authorization: string | null, scope = "default") => {
    const response = await fetch(`${box.url}/v1/engagements/start`, {
      method: "POST",
      body: JSON.stringify({ context: { gk_scope_id: { value: scope } } }),
      headers: { "content-type": "application/json", ...(authorization === null ? {} : { authorization }) },
    });
    const { status: answered } = (await response.json()) as { status: { statusCode: string } };
    return { http: response.status, code: answered.statusCode, challenge: response.headers.get("www-authenticate") };
  };

  it("requires a token, as in RFC 6750", async () => {
    expect(await status(null)).toMatchObject({
      http: 401,
      code: "NOT_AUTHORIZED",
      challenge: expect.stringMatching(/^Bearer /),
    });
    expect(await status("Basic abc")).toMatchObject({ http: 401 });
    expect(await status("Bearer nonsense")).toMatchObject({
      http: 401,
      challenge: expect.stringContaining("invalid_token"),
    });
  });

  it("accepts our own tokens, for their scopes only", async () => {
    expect(await status(`Bearer ${token}`)).toMatchObject({ http: 200, code: "OK" });
    expect(await status(`Bearer ${token}`, "somebody-elses")).toMatchObject({ http: 403, code: "PERMISSION_DENIED" });
  });

  it("accepts tokens of another issuer, with the claim that it uses", async () => {
    expect(await status(`Bearer ${await foreignToken({})}`)).toMatchObject({ http: 200 });
    expect(await status(`Bearer ${await foreignToken({ voice_scopes: ["other"] })}`)).toMatchObject({ http: 403 });
    expect(await status(`Bearer ${await foreignToken({ voice_scopes: undefined })}`)).toMatchObject({ http: 403 });
    expect(await status(`Bearer ${await foreignToken({ scope: "tts dlg" })}`)).toMatchObject({
      http: 403,
      challenge: expect.stringContaining("insufficient_scope"),
    });
  });

  it("refuses tokens that are expired, forged, altered or unsigned", async () => {
    expect(await status(`Bearer ${await foreignToken({}, { expires: "-10m" })}`)).toMatchObject({ http: 401 });
    expect(await status(`Bearer ${await foreignToken({}, { keys: forgedKeys })}`)).toMatchObject({ http: 401 });
    const [head, , signature] = token.split(".");
    const claims = JSON.parse(atob(token.split(".")[1]!.replaceAll("-", "+").replaceAll("_", "/"))) as object;
    const encode = (value: object) =>
      btoa(JSON.stringify(value)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    expect(
      await status(
        `Bearer ${head}.${encode({ ...claims, gk_scopes: ["somebody-elses"] })}.${signature}`,
        "somebody-elses",
      ),
    ).toMatchObject({ http: 401 });
    expect(await status(`Bearer ${encode({ alg: "none" })}.${encode(claims)}.`)).toMatchObject({ http: 401 });
  });

  it("guards gRPC in the same way", async () => {
    const nobody = overGrpc(box.url, () => null);
    await expect(
      nobody.call("StartEngagement", { context: { gk_scope_id: { value: "default" } } }),
    ).rejects.toMatchObject({ code: 16 });
    await expect(nobody.upload({ gk_scope_id: { value: "default" } }, new Uint8Array(10))).rejects.toMatchObject({
      code: 16,
    });
    nobody.close();
    const elsewhere = overGrpc(box.url, () => token);
    await expect(
      elsewhere.upload({ gk_scope_id: { value: "somebody-elses" } }, new Uint8Array(10)),
    ).rejects.toMatchObject({ code: 7 });
    elsewhere.close();
  });
});

it("a client that aborts a token request causes no error in the log", async () => {
  const before = logged.length;
  const socket = net.connect(Number(new URL(box.url).port), "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  const head = "POST /oauth2/token HTTP/1.1\r\nhost: box\r\ncontent-type: application/x-www-form-urlencoded\r\n";
  socket.write(`${head}content-length: 1000\r\n\r\ngrant_type=client_`);
  // When a request on another connection is answered, the first has arrived.
  await fetch(`${box.url}/healthz`);
  socket.destroy();
  await fetch(`${box.url}/healthz`);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(logged.slice(before).filter((line) => /"level":"error"|stack/.test(line))).toEqual([]);
});

it("an engine without workers is logged as an error, and the box is not ready", async () => {
  const lines: string[] = [];
  const engine = Object.assign(fixtureEngine(), { fault: "no worker can be started: no threads left" });
  const config = configSchema.parse({ port: 0, store: "memory" });
  const faulty = await startBox(config, { engine, log: jsonLog("error", (line) => lines.push(line)) });
  try {
    expect((await fetch(`${faulty.url}/readyz`)).status).toBe(503);
    await expect.poll(() => lines.join()).toContain("no threads left");
  } finally {
    await faulty.stop();
  }
});

it("its engine takes as many calls at once as live calls and uploads may make", async () => {
  const opened = vi.spyOn(OpenModels, "open");
  const limits = { concurrentAudio: 3, liveCalls: 50 };
  const own = await startBox(configSchema.parse({ port: 0, store: "memory", limits }), {
    engine: fixtureEngine(),
    log: jsonLog("silent"),
  });
  await own.stop();
  const [, options] = opened.mock.lastCall!;
  opened.mockRestore();
  // 64 for each worker, and 4 for each live call.
  expect(options).toMatchObject({ workers: 3, maxCalls: 392 });
});

it("that fails to start after its port is open closes the port, so that its process ends", async () => {
  const port = await new Promise<number>((resolve) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const { port: free } = server.address() as net.AddressInfo;
      server.close(() => resolve(free));
    });
  });
  const issuer = { issuer: "https://issuer.example", jwks: "https://issuer.example/jwks", audience: "vivavoce" };
  const config = configSchema.parse({ port, store: "memory", auth: { issuers: [issuer, issuer] } });
  const started = startBox(config, { engine: fixtureEngine(), log: jsonLog("silent") });
  await expect(started).rejects.toThrow("issuer https://issuer.example is listed twice");
  await expect(once(net.connect(port, "127.0.0.1"), "connect")).rejects.toMatchObject({ code: "ECONNREFUSED" });
});

it("is ready only after the secrets of a first start are saved", async () => {
  const seen: unknown[] = [];
  const fresh = await startBox(configSchema.parse({ port: 0, store: "memory" }), {
    engine: fixtureEngine(),
    log: jsonLog("silent"),
    keepSecrets: async ({ url, firstApplication, firstOwner }) => {
      seen.push((await fetch(`${url}/readyz`)).status, firstApplication?.clientSecret, firstOwner?.password);
    },
  });
  try {
    expect(seen).toEqual([503, fresh.firstApplication!.clientSecret, fresh.firstOwner!.password]);
    expect((await fetch(`${fresh.url}/readyz`)).status).toBe(200);
  } finally {
    await fresh.stop();
  }
});

it("a box whose guard is not set yet refuses every call", async () => {
  await expect(closedGuard.admit(`Bearer ${token}`, "127.0.0.1")).rejects.toMatchObject({ code: StatusCode.BUSY });
});

describe("the typed client", () => {
  const credentials = () => ({
    clientId: box.firstApplication!.clientId,
    clientSecret: box.firstApplication!.clientSecret,
  });

  it("gets tokens and throws the contract's statuses", async () => {
    const client = connect({ url: box.url, credentials: credentials() });
    const context = { gkScopeId: { value: "default" } };
    const { gkSessionId, gkEngagementId } = await client.startSession({ context });
    const session = {
      ...context,
      gkSessionId: gkSessionId!,
      gkEngagementId: gkEngagementId!,
      configsetId: "ivr-text-dependent",
    };
    const { gkMediaSegmentId } = await client.addMediaSegment({ context: session, chunk: takes(100, 5) });
    expect(gkMediaSegmentId!.value).not.toBe("");
    const failure = await client
      .train({ context: session, gkVoiceprintProfileId: { value: crypto.randomUUID() } })
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(StatusError);
    expect((failure as StatusError).code).toBe(StatusCode.NOT_FOUND);
    expect((failure as StatusError).status.requestId).not.toBe("");
    const notAudio = await client
      .addMediaSegment({ context: session, chunk: new TextEncoder().encode("no audio at all") })
      .catch((error: unknown) => error);
    expect((notAudio as StatusError).code).toBe(StatusCode.INVALID_REQUEST);
  });

  it("works with names, like the library in process", async () => {
    const voices = connectVoiceprints({ url: box.url, credentials: credentials() });
    const said = (speaker: number, take: number) => new File([takes(speaker, take) as BlobPart], `${take}.wav`);
    const recordings = [1, 2, 3].map((take) => said(140, take));
    const enrollment = await voices.enroll("olivia", recordings, { train: false });
    expect(enrollment).toMatchObject({ trained: false, enrollStatus: "TRAIN_SUGGESTED" });
    // Two simultaneous enrollments of a new person create one profile.
    const both = await Promise.all([
      voices.enroll("oscar", [said(141, 1)], { train: false }),
      voices.enroll("oscar", [said(141, 2)], { train: false }),
    ]);
    expect(both[0].profileId).toBe(both[1].profileId);
    expect(await voices.enroll("olivia", [said(140, 4)])).toMatchObject({ trained: true, reason: "TRAIN_OK" });
    expect(await voices.verify("olivia", said(140, 5))).toMatchObject({ decision: "AUTHENTIC" });
    const shared = new Uint8Array(new SharedArrayBuffer(takes(140, 5).length));
    shared.set(takes(140, 5));
    expect(await voices.verify("olivia", shared)).toMatchObject({ decision: "AUTHENTIC" });
    const { person } = await voices.identify(said(140, 6), ["olivia"]);
    expect(person).toBe("olivia");
    await expect(voices.verify("olga", said(140, 5))).rejects.toThrow('the person "olga" has no voiceprint');
    const broken = new File(["not a recording"], "notes.txt");
    await expect(voices.verify("olivia", broken)).rejects.toThrow(/^notes\.txt: /);
    expect(await voices.people()).toEqual(expect.arrayContaining(["olivia", "oscar"]));
    expect(await voices.fraudsters()).not.toContain("olivia");
    const found = await voices.identify(said(140, 6));
    expect(found).toMatchObject({ person: "olivia", falseAcceptRate: 0.01 });
    expect(found.ratio!).toBeGreaterThan(found.threshold!);
    // A print from a device can be imported; export needs the operator's permission.
    const engine = fixtureEngine();
    const device = await openVoiceprints({ engine });
    await device.enroll(
      "nora",
      [1, 2, 3].map((take) => said(150, take)),
    );
    const passphrase = "a long enough passphrase";
    expect(await voices.import(await device.export("nora", { passphrase }), { passphrase })).toMatchObject([
      { name: "nora" },
    ]);
    expect(await voices.verify("nora", said(150, 4))).toMatchObject({ decision: "AUTHENTIC" });
    await expect(voices.export("nora", { passphrase })).rejects.toMatchObject({ code: StatusCode.PERMISSION_DENIED });
    await device.close();
    for (const name of ["olivia", "nora"]) {
      expect(await voices.erase(name)).toBe(true);
      expect(await voices.erase(name)).toBe(false);
    }
  });

  it("gets another token if the box refuses the current one, once for each call", async () => {
    const asked: string[] = [];
    let issued = 0;
    // The first token is invalid, as after a key was revoked.
    const wrapped: typeof fetch = async (input, init) => {
      const path = new URL(String(input)).pathname;
      asked.push(path);
      const response = await fetch(input, init);
      if (path !== "/oauth2/token" || ++issued > 1) return response;
      return Response.json({ ...((await response.json()) as object), access_token: "revoked" });
    };
    const client = connect({ url: box.url, credentials: credentials(), fetch: wrapped });
    const context = { gkScopeId: { value: "default" } };
    await Promise.all([client.startEngagement({ context }), client.startEngagement({ context })]);
    expect(asked.filter((path) => path === "/oauth2/token").length).toBeLessThanOrEqual(3);
    const hopeless = connect({ url: box.url, token: "revoked" });
    await expect(hopeless.startEngagement({ context })).rejects.toMatchObject({ code: StatusCode.NOT_AUTHORIZED });
  });

  it("reports wrong credentials clearly", async () => {
    const client = connect({ url: box.url, credentials: { ...credentials(), clientSecret: "wrong" } });
    await expect(client.startEngagement({ context: { gkScopeId: { value: "default" } } })).rejects.toMatchObject({
      code: StatusCode.NOT_AUTHORIZED,
    });
  });

  const closedPort = async (): Promise<number> => {
    const server = net.createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as net.AddressInfo;
    server.close();
    await once(server, "close");
    return port;
  };

  it("reports clearly that the box cannot be reached", async () => {
    const url = `http://127.0.0.1:${await closedPort()}`;
    const context = { gkScopeId: { value: "default" } };
    const client = connect({ url, token: "t" });
    await expect(client.startEngagement({ context })).rejects.toThrow(
      new StatusError({
        statusCode: StatusCode.INTERNAL_ERROR,
        message: `cannot connect to ${url}: connection refused`,
      }),
    );
    await expect(client.addMediaSegment({ context, chunk: new Uint8Array(1) })).rejects.toThrow(
      `cannot connect to ${url}: connection refused`,
    );
    // As for any other call: BUSY is retried, for half a minute, but not a server that gives no answer.
    const fetched = vi.fn<typeof fetch>((...request) => fetch(...request));
    const withSecret = connect({ url, credentials: credentials(), fetch: fetched });
    await expect(withSecret.startEngagement({ context })).rejects.toThrow(
      `cannot get a token from ${url}/oauth2/token: the token endpoint cannot be reached: connection refused`,
    );
    expect(fetched).toHaveBeenCalledOnce();
  });

  it.each(["nonsense", "ftp://x", "", undefined])("refuses %j as an address", (url) => {
    expect(() => connect({ url: url as string })).toThrow(
      `url must be an address such as https://voice.example.com:8080, got ${url}`,
    );
  });

  it("takes an address as a URL", async () => {
    const operations = connect({ url: new URL(box.url), credentials: credentials() });
    await operations.startEngagement({ context: { gkScopeId: { value: "default" } } });
  });

  it.each([
    [undefined, "options must be an object, got undefined"],
    ["http://127.0.0.1", "options must be an object, got string"],
    [{ url: "http://127.0.0.1", timeoutMS: 5 }, "unknown option timeoutMS (did you mean timeoutMs?)"],
    [{ url: "http://127.0.0.1", retries: Number.NaN }, "retries must be a number of at least 0, got NaN"],
    [
      { url: "http://127.0.0.1", credentials: { clientID: "a", clientSecret: "b" } },
      "unknown option credentials.clientID (did you mean clientId?)",
    ],
    [
      { url: "http://127.0.0.1", credentials: { clientId: "a", clientSecret: undefined } },
      "clientSecret must be a non-empty string, got undefined",
    ],
  ])("a caller without a type checker is told what is wrong with %j", (options, message) => {
    expect(() => connect(options as never)).toThrow(message);
    expect(() => connectVoiceprints(options as never)).toThrow(message);
  });

  it("names an option of a call that it does not know", async () => {
    const operations = connect({ url: box.url, credentials: credentials() });
    const context = { gkScopeId: { value: "default" } };
    for (const call of [
      () => operations.startEngagement({ context }, { timeoutMS: 5 } as never),
      () => operations.addMediaSegment({ context }, { timeoutMS: 5 } as never),
    ])
      await expect(call()).rejects.toThrow("unknown option timeoutMS (did you mean timeoutMs?)");
  });
});

describe("bad input, end to end", () => {
  it.each([
    ["a path as an id", "../../../../etc/passwd"],
    ["a quote", "'; DROP TABLE profiles; --"],
    ["a null character", "a\0b"],
    ["a very long id", "x".repeat(3000)],
    ["an id of another alphabet", "голос"],
  ])("%s is not found, and nothing breaks", async (_, id) => {
    const client = overHttp(
      () => box.url,
      () => token,
    );
    const context = await openSession(client);
    await expect(
      client.call("Train", { context, gk_voiceprint_profile_id: { value: encodeURIComponent(id) } }),
    ).rejects.toMatchObject({
      statusCode: expect.stringMatching(/NOT_FOUND|INVALID_REQUEST/),
    });
  });

  it("names every mandatory field that is missing", async () => {
    const response = await fetch(`${box.url}/v1/voiceprints/p/verification`, {
      method: "POST",
      body: JSON.stringify({ context: { gk_scope_id: { value: "default" } } }),
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    });
    expect(response.status).toBe(400);
    const { status } = (await response.json()) as { status: { fieldViolations: { field: string }[] } };
    expect(status.fieldViolations.map(({ field }) => field)).toEqual(
      expect.arrayContaining(["context.gk_engagement_id", "context.gk_session_id", "context.configset_id"]),
    );
  });
});

describe("the logs of all these tests", () => {
  it("have request ids and operations, never a token, a secret or a name", () => {
    const all = logged.join("");
    expect(all).toContain('"operation":"Verify"');
    expect(all).not.toContain(token);
    expect(all).not.toContain(box.firstApplication!.clientSecret);
    expect(all).not.toMatch(/ada over/);
    for (const line of logged) expect(() => JSON.parse(line)).not.toThrow();
  });
});
