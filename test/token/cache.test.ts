import { createServer } from "node:net";
import { Metadata } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { createTokenCache, grpcMetadataGenerator, TokenRequestError } from "../../src/token/cache.js";
import { createBox, createRuntimeClient, ISSUER } from "./box.js";

async function client(options: { renewBeforeS?: number } = {}) {
  const box = createBox();
  const { clientId, secret } = await createRuntimeClient(box);
  let requests = 0;
  let broken: (() => Promise<Response>) | null = null;
  const cache = createTokenCache({
    tokenUrl: `${ISSUER}/oauth2/token`,
    clientId,
    clientSecret: secret,
    scope: "bio tts",
    clock: { now: box.now },
    fetch: (url, init) => {
      requests++;
      return broken ? broken() : box.fetch(String(url), init);
    },
    ...options,
  });
  return {
    box,
    cache,
    clientId,
    requests: () => requests,
    breakWith: (how: (() => Promise<Response>) | null) => {
      broken = how;
    },
  };
}

describe("a client's token cache", () => {
  test("many callers share one request and one token", async () => {
    const { box, cache, requests } = await client();
    const tokens = await Promise.all(Array.from({ length: 50 }, () => cache.token()));
    expect(new Set(tokens).size).toBe(1);
    expect(requests()).toBe(1);
    expect((await box.service.runtime.authorize(await cache.authorization(), "bio")).scopes.has("tts")).toBe(true);
  });

  test("renews a token before it expires", async () => {
    const { box, cache, requests } = await client();
    const first = await cache.token();
    box.advance(839_000);
    expect(await cache.token()).toBe(first);
    box.advance(2_000);
    expect(await cache.token()).not.toBe(first);
    expect(requests()).toBe(2);
  });

  test("uses half of a lifetime that is shorter than the margin", async () => {
    const { box, cache, requests } = await client({ renewBeforeS: 3600 });
    await cache.token();
    box.advance(449_000);
    await cache.token();
    expect(requests()).toBe(1);
    box.advance(2_000);
    await cache.token();
    expect(requests()).toBe(2);
  });

  test("while the endpoint is down, a valid token is still used; afterwards the error is reported and the request repeated", async () => {
    const { box, cache, breakWith } = await client();
    const first = await cache.token();
    breakWith(async () => {
      throw new TypeError("fetch failed");
    });
    box.advance(850_000);
    expect(await cache.token()).toBe(first);
    box.advance(60_000);
    await expect(cache.token()).rejects.toMatchObject({ status: 0, code: "unreachable" });
    breakWith(null);
    expect(await cache.token()).not.toBe(first);
  });

  test("an endpoint that is down is asked again after five seconds, not with every call", async () => {
    const { box, cache, requests, breakWith } = await client();
    const first = await cache.token();
    breakWith(async () => new Response("", { status: 502 }));
    box.advance(850_000);
    for (const [ms, asked] of [
      [0, 2],
      [4_999, 2],
      [1, 3],
    ] as const) {
      box.advance(ms);
      const tokens = [cache.token(), cache.token()];
      expect(await Promise.all([...tokens, cache.token()])).toEqual([first, first, first]);
      expect(requests()).toBe(asked);
    }
    breakWith(null);
    box.advance(5_000);
    expect(await cache.token()).not.toBe(first);
  });

  test("a token is never used after it has expired, even if the endpoint is down", async () => {
    const { box, cache, breakWith } = await client();
    const first = await cache.token();
    breakWith(async () => new Response("", { status: 502 }));
    box.advance(898_000);
    expect(await cache.token()).toBe(first);
    box.advance(2_000);
    await expect(cache.token()).rejects.toMatchObject({
      status: 502,
      code: "unknown",
      message: "the token endpoint answered 502",
    });
  });

  test("a token that expires or is refused while the endpoint is asked is not used again", async () => {
    for (const meanwhile of ["expired", "discarded"]) {
      const { box, cache, breakWith } = await client();
      const first = await cache.token();
      box.advance(850_000);
      breakWith(async () => {
        if (meanwhile === "expired") box.advance(50_000);
        else cache.discard(first);
        return new Response("", { status: 502 });
      });
      await expect(cache.token()).rejects.toMatchObject({ status: 502 });
    }
  });

  test.each([
    [400, "refused"],
    [429, "kept"],
    [499, "refused"],
    [500, "kept"],
  ])("if a renewal is answered %i, the token is %s", async (status, outcome) => {
    const { box, cache, breakWith } = await client();
    const first = await cache.token();
    box.advance(850_000);
    breakWith(async () => Response.json({ error: "x" }, { status }));
    if (outcome === "kept") expect(await cache.token()).toBe(first);
    else await expect(cache.token()).rejects.toMatchObject({ status, code: "x" });
  });

  test.each([undefined, 0, "900"])("a token with the lifetime %j is used once", async (expires_in) => {
    const { cache, requests, breakWith } = await client();
    breakWith(async () => Response.json({ access_token: "x", token_type: "Bearer", expires_in }));
    await cache.token();
    await cache.token();
    expect(requests()).toBe(2);
  });

  test("the message says why the endpoint was not reached", async () => {
    const { cache, breakWith } = await client();
    const message = async (why: unknown) => {
      breakWith(() => Promise.reject(why));
      return cache.token().catch((error: Error) => error.message);
    };
    const prefix = "the token endpoint cannot be reached: ";
    expect(await message(new Error("no network"))).toBe(`${prefix}no network`);
    expect(await message("nothing")).toBe(`${prefix}unknown`);
    const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    expect(await message(new TypeError("fetch failed", { cause: refused }))).toBe(`${prefix}connection refused`);
  });

  test("a refusal is reported at once, with the endpoint's message", async () => {
    const { box, cache, breakWith } = await client();
    await cache.token();
    box.advance(850_000);
    breakWith(async () => Response.json({ error: "invalid_client", error_description: "gone" }, { status: 401 }));
    await expect(cache.token()).rejects.toMatchObject({ status: 401, code: "invalid_client", message: "gone" });
  });

  test.each([
    ["no token", () => Response.json({ token_type: "bearer" })],
    ["an empty token", () => Response.json({ access_token: "", token_type: "bearer" })],
    ["a token that is not a text", () => Response.json({ access_token: 7, token_type: "bearer" })],
    ["another type", () => Response.json({ access_token: "x", token_type: "mac" })],
    ["no JSON", () => new Response("<html>")],
    ["an error without words", () => new Response("", { status: 502 })],
  ])("an answer with %s is an error", async (_, answer) => {
    const { cache, breakWith } = await client();
    breakWith(async () => answer());
    await expect(cache.token()).rejects.toBeInstanceOf(TokenRequestError);
  });

  test("a token that the service refused is not used again", async () => {
    const { cache } = await client();
    const first = await cache.token();
    cache.discard("another");
    expect(await cache.token()).toBe(first);
    cache.discard(first);
    expect(await cache.token()).not.toBe(first);
  });

  test("an endpoint that never answers times out", async () => {
    const sockets: { destroy(): void }[] = [];
    const silent = createServer((socket) => sockets.push(socket)).listen(0, "127.0.0.1");
    await new Promise((resolve) => silent.once("listening", resolve));
    const { port } = silent.address() as { port: number };
    const cache = createTokenCache({
      tokenUrl: `http://127.0.0.1:${port}/`,
      clientId: "a",
      clientSecret: "b",
      scope: "bio",
      timeoutMs: 50,
    });
    await expect(cache.token()).rejects.toMatchObject({ code: "unreachable" });
    for (const socket of sockets) socket.destroy();
    silent.close();
  });

  test("feeds gRPC channel credentials", async () => {
    const { box, cache, breakWith } = await client();
    const generate = grpcMetadataGenerator(cache, () => new Metadata());
    const ask = () =>
      new Promise<Metadata>((resolve, reject) =>
        generate({}, (error, metadata) => (error ? reject(error) : resolve(metadata as Metadata))),
      );
    const [authorization] = (await ask()).get("authorization");
    await box.service.runtime.authorize(String(authorization), "bio");
    cache.discard(await cache.token());
    breakWith(async () => new Response("", { status: 500 }));
    await expect(ask()).rejects.toBeInstanceOf(TokenRequestError);
  });
});
