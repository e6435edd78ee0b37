/** A real browser for tests of pages, an accessibility checker, and a server for build output. */
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import type * as AxeCore from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";
import { mix, noise, utter, wav } from "./voice.js";

export function launch(microphoneFile?: string, ...more: readonly string[]): Promise<Browser> {
  return chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--use-fake-ui-for-media-stream",
      "--use-fake-device-for-media-stream",
      ...(microphoneFile ? [`--use-file-for-fake-audio-capture=${microphoneFile}`] : []),
      ...more,
    ],
  });
}

export interface Site {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves the responses of `answer` on a local port. */
export async function serve(answer: (request: Request) => Response | null): Promise<Site> {
  const server: Server = createServer(async (incoming, outgoing) => {
    const headers = { "accept-encoding": String(incoming.headers["accept-encoding"] ?? "") };
    const response =
      answer(new Request(`http://page${incoming.url}`, { headers })) ?? new Response(null, { status: 404 });
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    outgoing.end(Buffer.from(await response.arrayBuffer()));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Problems that an accessibility checker finds. */
export async function barriers(page: Page): Promise<string[]> {
  // Colors in the middle of a transition do not count.
  await page.evaluate(async () => {
    const passing = document.getAnimations().filter((one) => one.effect?.getComputedTiming().endTime !== Infinity);
    await Promise.all(passing.map((one) => one.finished.catch(() => {})));
  });
  // The page's policy blocks other scripts, so the test evaluates the checker's script: once in each document, because it is large. Its whole
  // answer is large too, so only the problems leave the page.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe);
  return page.evaluate(async () => {
    const checker = (window as unknown as { axe: typeof AxeCore }).axe;
    const { violations } = await checker.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
  });
}

/** The same in light and dark, on a phone and on a desktop; it must not scroll sideways either. Restores the window. */
export async function barriersEverywhere(page: Page): Promise<string[]> {
  const before = page.viewportSize()!;
  const found: string[] = [];
  for (const width of [390, 1280]) {
    await page.setViewportSize({ width, height: 844 });
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      found.push(...(await barriers(page)).map((one) => `${width} px, ${colorScheme}: ${one}`));
    }
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    if (wide > width) found.push(`${width} px: the page is ${wide} px wide`);
  }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize(before);
  return found;
}

/** A synthesized voice in a quiet room, as a WAV file. */
export function recordingOf(speaker: number, seed: number, seconds: number): Buffer {
  const rateHz = 48_000;
  const { samples } = utter({ speaker, seconds, rateHz, seed });
  return Buffer.from(wav(mix(samples, noise(seconds, rateHz, seed), 35), rateHz));
}
