/** The client and a box, or a source of tokens, that stops answering in the middle of a call. */
import { once } from "node:events";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { connect, connectVoiceprints, StatusCode } from "../../src/client/index.js";
import { type LiveBox, scope, startLiveBox, stopLiveBoxes } from "../live/live-box.js";
import { rateHz, take } from "../processor/fixture-engine.js";

vi.setConfig({ testTimeout: 60_000 });

let live: LiveBox;
beforeAll(async () => {
  live = await startLiveBox();
  await live.enroll("ada", 100);
});
afterAll(stopLiveBoxes);

const audio = { samples: take(100, 3), rateHz };

/** As `fetch` waits for an answer that does not come. */
const noAnswer = (signal: AbortSignal | null | undefined) =>
  new Promise<never>((_, reject) => {
    if (signal?.aborted) reject(signal.reason);
    signal?.addEventListener("abort", () => reject(signal.reason));
  });

/** The easy door on a box that does not answer requests to these paths; `asked` lists those that it got. */
function doorOn(unanswered: RegExp) {
  const asked: string[] = [];
  const fetched: typeof fetch = (input, init) => {
    const { pathname } = new URL(String(input));
    asked.push(pathname.split("/").at(-1)!);
    return unanswered.test(pathname) ? noAnswer(init?.signal) : fetch(input, init);
  };
  return { asked, voice: connectVoiceprints({ url: live.box.url, scope, WebSocket, fetch: fetched }) };
}

/** Verifies, and leaves as soon as the box was asked what it does not answer. */
async function left(unanswered: string, others = ""): Promise<{ asked: string[]; verified: Promise<unknown> }> {
  const { asked, voice } = doorOn(new RegExp(`/(${unanswered}${others})$`));
  const leaving = new AbortController();
  const verified = voice.verify("ada", audio, { signal: leaving.signal });
  verified.catch(() => {});
  await expect.poll(() => asked).toContain(unanswered);
  leaving.abort();
  return { asked, verified };
}

it.each(["StartSession", "GetGkVoiceprintProfileId", "audios", "Verify"])(
  "a call ends with its time limit or its signal, and stops its session, if the box does not answer %s",
  async (path) => {
    const { asked, verified } = await left(path);
    await expect(verified).rejects.toMatchObject({ code: StatusCode.CANCELLED });
    expect(asked.at(-1)).toBe(path === "StartSession" ? path : "StopEngagement");
    const { voice } = doorOn(new RegExp(`/${path}$`));
    for (const choices of [{ timeoutMs: 200 }, { signal: AbortSignal.timeout(200) }])
      await expect(voice.verify("ada", audio, choices)).rejects.toMatchObject({ code: StatusCode.DEADLINE_EXCEEDED });
  },
);

it("the time limit is that of the whole call, not of each of its requests", async () => {
  const asked: string[] = [];
  const slow: typeof fetch = async (input, init) => {
    asked.push(String(input));
    await Promise.race([new Promise((resolve) => setTimeout(resolve, 200)), noAnswer(init?.signal)]);
    return fetch(input, init);
  };
  const voice = connectVoiceprints({ url: live.box.url, scope, fetch: slow });
  await expect(voice.verify("ada", audio, { timeoutMs: 300 })).rejects.toMatchObject({
    code: StatusCode.DEADLINE_EXCEEDED,
  });
  expect(asked.filter((url) => url.endsWith("/Verify"))).toEqual([]);
});

it("an error does not wait for a session that cannot be stopped", async () => {
  const { asked, verified } = await left("Verify", "|StopEngagement");
  await expect(verified).rejects.toMatchObject({ code: StatusCode.CANCELLED });
  expect(asked.at(-1)).toBe("StopEngagement");
});

it("a call ends with its time limit if its token never comes", async () => {
  const operations = connect({ url: live.box.url, token: () => new Promise(() => {}) });
  const context = { gkScopeId: { value: scope } };
  for (const call of [
    () => operations.startSession({ context }, { timeoutMs: 100 }),
    () => operations.addMediaSegment({ context, chunk: new Uint8Array(100) }, { timeoutMs: 100 }),
  ])
    await expect(call()).rejects.toMatchObject({ code: StatusCode.DEADLINE_EXCEEDED });
});

it("a call ends with its time limit if its recording never ends, and reads no more of it", async () => {
  const operations = connect({ url: live.box.url });
  const context = { gkScopeId: { value: scope } };
  let [read, isClosed] = [0, false];
  async function* endless() {
    try {
      for (;;) {
        yield { context, chunk: new Uint8Array(1) };
        read++;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    } finally {
      isClosed = true;
    }
  }
  const call = operations.addMediaSegment(endless(), { timeoutMs: 100 });
  await expect(call).rejects.toMatchObject({ code: StatusCode.DEADLINE_EXCEEDED });
  expect(read).toBeGreaterThan(0);
  await expect.poll(() => isClosed).toBe(true);
  const silent = { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }) };
  const other = operations.addMediaSegment(silent, { timeoutMs: 100 });
  await expect(other).rejects.toMatchObject({ code: StatusCode.DEADLINE_EXCEEDED });
});

it("an error of the caller's own recording is thrown as it is", async () => {
  const fault = Object.assign(new Error("the recorder was unplugged"), { code: "ECONNRESET" });
  const broken = { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(fault) }) };
  await expect(connect({ url: live.box.url }).addMediaSegment(broken)).rejects.toBe(fault);
});

it("a token endpoint with too many requests is asked again when it says, within the limit of the call", async () => {
  let refusals = 1;
  let retryAfter = "1";
  const endpoint: typeof fetch = async (input, init) => {
    if (!String(input).endsWith("/oauth2/token")) return fetch(input, init);
    if (refusals-- > 0)
      return Response.json(
        { error: "temporarily_unavailable", error_description: "too many requests" },
        { status: 429, headers: { "retry-after": retryAfter } },
      );
    return Response.json({ access_token: "token", token_type: "bearer", expires_in: 900 });
  };
  const credentials = { clientId: "id", clientSecret: "secret" };
  const operations = () => connect({ url: live.box.url, credentials, fetch: endpoint });
  await operations().startSession({ context: { gkScopeId: { value: scope } } });
  expect(refusals).toBe(-1);
  refusals = 1;
  retryAfter = "60";
  await expect(operations().startSession({ context: { gkScopeId: { value: scope } } })).rejects.toMatchObject({
    code: StatusCode.RATE_EXCEEDED,
    message: expect.stringContaining("cannot get a token from"),
    status: { retryAfter: { seconds: 60n } },
  });
  refusals = 1;
  retryAfter = "20";
  const limited = operations().startSession({ context: { gkScopeId: { value: scope } } }, { timeoutMs: 100 });
  await expect(limited).rejects.toMatchObject({ code: StatusCode.DEADLINE_EXCEEDED });
});

it("a call that has ended before it begins asks for no token", async () => {
  const token = vi.fn(() => new Promise<string>(() => {}));
  const operations = connect({ url: live.box.url, token });
  for (const [options, code] of [
    [{ timeoutMs: 0 }, StatusCode.DEADLINE_EXCEEDED],
    [{ signal: AbortSignal.abort() }, StatusCode.CANCELLED],
  ] as const)
    await expect(operations.listGroups({ context: {} }, options)).rejects.toMatchObject({ code });
  expect(token).not.toHaveBeenCalled();
});

it("an unlimited time is no time limit", async () => {
  const operations = connect({ url: live.box.url, timeoutMs: Number.POSITIVE_INFINITY });
  await operations.startSession({ context: { gkScopeId: { value: scope } } });
});

it("a listener is not opened forever", async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  class Elsewhere extends WebSocket {
    constructor(_: string, protocols: string[]) {
      super(`ws://127.0.0.1:${port}`, protocols);
    }
  }
  const voice = connectVoiceprints({ url: live.box.url, scope, WebSocket: Elsewhere });
  try {
    await expect(voice.listen({ persons: ["ada"] }, rateHz, { timeoutMs: 300 })).rejects.toMatchObject({
      code: StatusCode.DEADLINE_EXCEEDED,
    });
    const signal = AbortSignal.timeout(300);
    await expect(voice.listen({ persons: ["ada"] }, rateHz, { signal })).rejects.toMatchObject({
      code: StatusCode.DEADLINE_EXCEEDED,
    });
  } finally {
    server.close();
  }
});
