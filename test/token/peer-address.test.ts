import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createTokenApp } from "../../src/token/app.js";
import { createPeerAddress } from "../../src/token/peer-address.js";
import { basic, createBox, createRuntimeClient, form, ISSUER } from "./box.js";

describe("the caller's address", () => {
  test.each<[string, string[], string | undefined, string | undefined, string]>([
    ["no proxy named: the header is not read", [], "192.0.2.1", "203.0.113.9", "192.0.2.1"],
    ["a stranger's header is not read", ["10.0.0.0/8"], "192.0.2.1", "203.0.113.9", "192.0.2.1"],
    ["a proxy's header is", ["10.0.0.0/8"], "10.1.2.3", "203.0.113.9", "203.0.113.9"],
    [
      "its last entry: the ones before are the caller's own words",
      ["10.0.0.1"],
      "10.0.0.1",
      "1.1.1.1, 2.2.2.2",
      "2.2.2.2",
    ],
    ["through several proxies of ours", ["10.0.0.0/8"], "10.0.0.1", "1.1.1.1, 2.2.2.2, 10.0.0.2", "2.2.2.2"],
    ["all of them ours: the first", ["10.0.0.0/8"], "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
    ["no header", ["10.0.0.1"], "10.0.0.1", undefined, "10.0.0.1"],
    ["no address in it", ["10.0.0.1"], "10.0.0.1", "unknown", "10.0.0.1"],
    ["IPv4 inside IPv6", ["127.0.0.1"], "::ffff:127.0.0.1", "::ffff:192.0.2.7", "192.0.2.7"],
    ["IPv6", ["fd00::/8"], "fd00::1", "2001:db8::7", "2001:db8::7"],
    ["IPv4 with a port", ["10.0.0.1"], "10.0.0.1", "203.0.113.9:49152", "203.0.113.9"],
    ["IPv6 with a port", ["10.0.0.1"], "10.0.0.1", "[2001:db8::7]:49152", "2001:db8::7"],
    ["no connection at all", ["10.0.0.1"], undefined, "192.0.2.1", ""],
    ["one address of a network", ["10.0.0.1/32", "fd00::1/128"], "10.0.0.1", "192.0.2.7", "192.0.2.7"],
    ["one IPv6 address of a network", ["10.0.0.1/32", "fd00::1/128"], "fd00::1", "192.0.2.7", "192.0.2.7"],
    ["the address beside it", ["10.0.0.1/32", "fd00::1/128"], "10.0.0.2", "192.0.2.7", "10.0.0.2"],
    ["every address", ["0.0.0.0/0"], "192.0.2.1", "192.0.2.7", "192.0.2.7"],
    ["no address but a Unix socket", ["10.0.0.1"], "", "192.0.2.7", ""],
  ])("%s", (_, proxies, peer, header, address) => {
    expect(createPeerAddress(proxies)(peer, header)).toBe(address);
  });

  test("the header of a stranger is not even looked at, because it may be long", () => {
    const header = new Proxy({}, { get: () => expect.unreachable("the header was read") }) as unknown as string;
    expect(createPeerAddress(["10.0.0.0/8"])("192.0.2.1", header)).toBe("192.0.2.1");
  });

  test("whatever a caller puts into the header, only the part that the proxy appends counts", () => {
    const of = createPeerAddress(["10.0.0.0/8"]);
    fc.assert(
      fc.property(fc.string(), fc.ipV4(), (written, real) => {
        fc.pre(!real.startsWith("10."));
        expect(of("10.0.0.1", `${written}, ${real}`)).toBe(real);
      }),
    );
  });

  test.each(["proxy.example.com", "10.0.0.0/33", "10.0.0.0/8/8", "10.0.0.0/x", "fd00::/129", ""])(
    "%s is no proxy",
    (proxy) => {
      expect(() => createPeerAddress([proxy])).toThrow(TypeError);
    },
  );
});

test("behind a proxy each caller is slowed down separately", async () => {
  const box = createBox();
  const { clientId, secret } = await createRuntimeClient(box);
  const app = createTokenApp(box.service, { peerAddress: createPeerAddress(["127.0.0.1"]) });
  const ask = (password: string, forwardedFor: string) => {
    const init = form(basic(clientId, password), { grant_type: "client_credentials", scope: "tts" });
    const headers = { ...init.headers, "X-Forwarded-For": forwardedFor };
    const connection = { incoming: { socket: { remoteAddress: "127.0.0.1" } } } as never;
    return app.fetch(new Request(`${ISSUER}/oauth2/token`, { ...init, headers }), connection);
  };
  for (let i = 0; i < 5; i++) expect((await ask("wrong", "192.0.2.1")).status).toBe(401);
  expect((await ask(secret, "192.0.2.1")).status).toBe(429);
  expect((await ask(secret, `192.0.2.2, 192.0.2.1`)).status).toBe(429);
  expect((await ask(secret, "192.0.2.2")).status).toBe(200);
});
