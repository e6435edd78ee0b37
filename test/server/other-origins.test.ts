import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Service } from "../../src/server/service.js";
import { rehearse } from "./rehearsal.js";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];

let browser: Browser;
let pages: Server;
let page: Page;
let origin: string;
const services: Service[] = [];

async function box(origins: string[], trustProxy: string[] = []): Promise<string> {
  const { service } = rehearse({}, { cors: { origins }, trustProxy });
  await service.listen();
  services.push(service);
  return service.url;
}

beforeAll(async () => {
  pages = createServer((_, response) =>
    response.setHeader("content-type", "text/html").end("<title>elsewhere</title>"),
  );
  await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", headless: true, args: FLAGS });
  page = await browser.newPage();
  await page.goto(origin);
});
afterAll(async () => {
  await browser?.close();
  pages?.close();
  await Promise.all(services.map((service) => service.stop()));
});

interface Asked {
  readonly verb?: string;
  readonly path: string;
  readonly body?: string;
  readonly type?: string;
}

/** A request from the page: the status and what the page can read, or how the browser refused it. */
const asked = (url: string, request: Asked) =>
  page.evaluate(
    async ([target, { verb = "POST", path, body, type }]) => {
      try {
        const response = await fetch(target + path, {
          method: verb,
          headers: { authorization: "Bearer t", ...(type ? { "content-type": type } : {}) },
          ...(body === undefined ? {} : { body }),
        });
        return { status: response.status, requestId: response.headers.get("x-request-id") };
      } catch (error) {
        return String(error);
      }
    },
    [url, request] as const,
  );

const CALLS: [string, Asked][] = [
  ["HTTP POST", { path: "/v1/engagements/start", body: "{}", type: "application/json" }],
  ["HTTP GET", { path: "/v1/sessions/decision", verb: "GET" }],
  ["HTTP DELETE", { path: "/v1/voiceprints/p", verb: "DELETE" }],
  ["Connect", { path: "/vendor.biosec.v1.EngagementsProcessor/StartEngagement", body: "{}", type: "application/json" }],
  [
    "gRPC-Web",
    {
      path: "/vendor.biosec.v1.EngagementsProcessor/StartEngagement",
      body: "\0\0\0\0\0",
      type: "application/grpc-web+proto",
    },
  ],
];

describe("a page of another origin, in a real browser", () => {
  it.each(CALLS)("can call over %s and read the request id if it is listed", async (_, call) => {
    expect(await asked(await box([origin]), call)).toEqual({ status: 200, requestId: expect.stringMatching(/./) });
  });

  it.each(CALLS)("is refused over %s if it is not listed", async (_, call) => {
    expect(await asked(await box(["https://app.example.com"]), call)).toMatch(/Failed to fetch/);
    expect(await asked(await box([]), call)).toMatch(/Failed to fetch/);
  });
});

describe("the headers", () => {
  it("allow the one origin, never cookies", async () => {
    const url = await box(["https://a.example", "https://b.example"]);
    const answered = await fetch(`${url}/healthz`, { headers: { origin: "https://b.example" } });
    expect(answered.headers.get("access-control-allow-origin")).toBe("https://b.example");
    expect(answered.headers.get("access-control-allow-credentials")).toBeNull();
    expect(answered.headers.get("vary")).toContain("origin");
    const other = await fetch(`${url}/healthz`, { headers: { origin: "https://b.example.evil" } });
    expect(other.headers.get("access-control-allow-origin")).toBeNull();
    expect(other.headers.get("vary")).toContain("origin");
  });
});

describe("behind a proxy", () => {
  const rated = async (trustProxy: string[]) => {
    const { service } = rehearse({}, { trustProxy, limits: { callsPerSecond: 0.01, callBurst: 1 } });
    await service.listen();
    services.push(service);
    const call = async (forwardedFor: string, path: string) =>
      (
        await fetch(service.url + path, {
          method: "POST",
          body: "{}",
          headers: { "content-type": "application/json", "x-forwarded-for": forwardedFor },
        })
      ).status;
    return call;
  };

  it("that is trusted, callers are told apart by its header, over HTTP and RPC", async () => {
    const call = await rated(["127.0.0.0/8"]);
    const rpc = "/vendor.biosec.v1.EngagementsProcessor/StartEngagement";
    expect(await call("192.0.2.1", "/v1/engagements/start")).toBe(200);
    expect(await call("192.0.2.1", rpc)).toBe(429);
    expect(await call("192.0.2.2", rpc)).toBe(200);
    expect(await call("192.0.2.2", "/v1/engagements/start")).toBe(429);
  });

  it("that is not trusted, the header is ignored, because anybody could send it", async () => {
    const call = await rated([]);
    expect(await call("192.0.2.1", "/v1/engagements/start")).toBe(200);
    expect(await call("192.0.2.2", "/v1/engagements/start")).toBe(429);
  });
});
