/** Sends the results of a call to a webhook: signed, with retries, and with a limited number at a time. */
import { createHmac } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { connectionFault } from "../contract/connection-fault.js";
import type { TelephonyLog } from "./exchange.js";
import type { Line } from "./line.js";
import type { FailedCall, LineMessage } from "./line-message.js";

const MOST_WAITING = 1000;
const FIRST_PAUSE_MS = 500;
/** For the one attempt after a stop. */
const LAST_ATTEMPT_MS = 1000;
/** What a program waits for. */
const ENDS: ReadonlySet<string> = new Set(["result", "failed"]);

export const SIGNATURE_HEADER = "x-vivavoce-signature";

/**
 * `t=…,v1=…`: the time in seconds, and the HMAC-SHA256 of time, a dot and the body. Receivers should check both and
 * refuse old requests.
 */
export function signatureOf(secret: string, seconds: number, body: string): string {
  return `t=${seconds},v1=${createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex")}`;
}

export class Webhook {
  readonly #waiting = new Set<Promise<void>>();
  readonly #stopped = new AbortController();

  constructor(
    private readonly line: Line,
    private readonly log: TelephonyLog,
  ) {}

  /** Not awaited: a slow receiver must not delay a call. */
  send(call: Readonly<Record<string, string>>, message: LineMessage | FailedCall): void {
    const { webhook, name } = this.line;
    if (!webhook || !(webhook.everything || ENDS.has(message.type))) return;
    // Whoever reads the log can ask for the decision of the session.
    const of = { line: name, ...(message.context && { session: message.context.gkSessionId.value }) };
    if (this.#waiting.size >= MOST_WAITING) {
      this.log.warn("a webhook was dropped: too many are waiting", of);
      return;
    }
    const body = JSON.stringify({ line: name, call, ...message });
    const delivery = this.#deliver(body)
      .catch((error: unknown) =>
        this.log.warn("a webhook was not delivered", { ...of, reason: connectionFault(error) ?? String(error) }),
      )
      .finally(() => this.#waiting.delete(delivery));
    this.#waiting.add(delivery);
  }

  /** Resolves when everything sent so far has been delivered or given up. */
  async delivered(): Promise<void> {
    await Promise.all(this.#waiting);
  }

  /** Ends running attempts and retries. What is not delivered, also what comes later, has one short attempt: the box may be late, not the receiver. */
  stop(): void {
    this.#stopped.abort();
  }

  async #deliver(body: string): Promise<void> {
    const { url, secret, attempts, timeoutSeconds } = this.line.webhook!;
    for (let attempt = 1; ; attempt++) {
      const { signal } = this.#stopped;
      const isAfterStop = signal.aborted;
      const ended = isAfterStop
        ? AbortSignal.timeout(LAST_ATTEMPT_MS)
        : AbortSignal.any([signal, AbortSignal.timeout(timeoutSeconds * 1000)]);
      try {
        const signature = signatureOf(secret, Math.floor(Date.now() / 1000), body);
        const response = await fetch(url, {
          method: "POST",
          headers: { "content-type": "application/json", [SIGNATURE_HEADER]: signature },
          body,
          redirect: "error",
          signal: ended,
        });
        await response.body?.cancel();
        if (response.ok) return;
        if (response.status < 500 && response.status !== 429 && response.status !== 408)
          throw new Refused(`HTTP ${response.status}`);
        throw new Error(`HTTP ${response.status}`);
      } catch (error) {
        if (error instanceof Refused || isAfterStop || (attempt >= attempts && !signal.aborted)) throw error;
      }
      const pauseMs = FIRST_PAUSE_MS * 2 ** (attempt - 1) * (0.75 + Math.random() / 2);
      await wait(pauseMs, undefined, { signal }).catch(() => {});
    }
  }
}

/** The receiver has read the request and rejected it. */
class Refused extends Error {}
