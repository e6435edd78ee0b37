/** Live calls from a real browser: the client's `LiveCall`. */
import { create, toJson } from "@bufbuild/protobuf";
import { build } from "esbuild";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { LiveCall } from "../../src/client/index.js";
import { ContextSchema } from "../../src/contract/index.js";
import { launch, type Site, serve } from "../chromium.js";
import { type LiveBox, startLiveBox, stopLiveBoxes } from "./live-box.js";

let browser: Browser;
let site: Site;
let live: LiveBox;
let profile: { value: string };
let client: string;

beforeAll(async () => {
  const bundled = await build({
    entryPoints: ["src/client/index.ts"],
    bundle: true,
    format: "esm",
    platform: "browser",
    write: false,
  });
  client = bundled.outputFiles[0]!.text;
  const pages: Record<string, [string, string]> = {
    "/": ["text/html", '<script type="module">import * as client from "/client.js"; window.client = client;</script>'],
    "/client.js": ["text/javascript", client],
  };
  site = await serve((request) => {
    const [type, body] = pages[new URL(request.url).pathname] ?? [];
    return body === undefined ? null : new Response(body, { headers: { "content-type": type! } });
  });
  live = await startLiveBox({ cors: { origins: [new URL(site.url).origin] } });
  profile = await live.enroll("ada", 100);
  browser = await launch();
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await site?.close();
  await stopLiveBoxes();
});

declare global {
  interface Window {
    client: { LiveCall: new (options: object) => LiveCall };
  }
}

const visited = async (): Promise<Page> => {
  const page = await browser.newPage();
  await page.goto(site.url);
  await page.waitForFunction(() => "client" in window);
  return page;
};

const opened = async () => toJson(ContextSchema, create(ContextSchema, await live.openSession()));

it("LiveCall sends samples of the page and gets the result", async () => {
  const page = await visited();
  const told = await page.evaluate(
    async ({ url, context, profile }) => {
      const { LiveCall } = window.client;
      const events: { case: string; value: { result?: { value: { decision: number } } } }[] = [];
      const task = { case: "verify", value: { gkVoiceprintProfileId: profile } };
      const call = new LiveCall({
        url,
        start: { context, encoding: "float32", rate: 8000, parties: [{ name: "me", task }] },
        onEvent: ({ event }: { event: (typeof events)[number] }) => events.push(event),
      });
      for (let i = 0; i < 200; i++) call.push(new Uint8Array(new Float32Array(160).fill(0.1).buffer));
      call.end();
      await call.done;
      return { events: events.map((event) => event.case), decision: events.at(-1)!.value.result!.value.decision };
    },
    { url: live.box.url, context: await opened(), profile },
  );
  expect(told).toEqual({ events: ["started", "progress", "checkpoint", "result"], decision: 1 });
  await page.close();
});

it("a page from an origin that is not listed is rejected", async () => {
  const page = await visited();
  const other = await startLiveBox();
  const reason = await page.evaluate(async (url) => {
    const { LiveCall } = window.client;
    const start = { encoding: "pcm16", rate: 8000 };
    const call = new LiveCall({ url, start, onEvent: () => {}, reconnects: 0 });
    return call.done.then(
      () => "connected",
      (error: Error) => error.name,
    );
  }, other.box.url);
  expect(reason).toBe("StatusError");
  await page.close();
});
