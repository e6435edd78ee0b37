/** A real browser for the page's tests, and a server for what was built. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Browser, chromium } from "playwright-core";
import { mix, noise, utter, wav } from "../../src/demo/voice.js";

export function launch(microphoneFile?: string): Promise<Browser> {
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
    ],
  });
}

export interface Site {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves what `answer` gives, on a port of this machine. */
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

/** A synthesized voice in a quiet room, as a WAV file. */
export function recordingOf(speaker: number, seed: number, seconds: number): Buffer {
  const rateHz = 48_000;
  const { samples } = utter({ speaker, seconds, rateHz, seed });
  return Buffer.from(wav(mix(samples, noise(seconds, rateHz, seed), 35), rateHz));
}
