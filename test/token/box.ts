import { type CryptoKey, generateKeyPair } from "jose";
import { createMemoryStore } from "../../src/store/memory.js";
import { createTokenApp, type TokenApp } from "../../src/token/app.js";
import type { AuditEvent } from "../../src/token/audit.js";
import type { SigningAlgorithm } from "../../src/token/keyring.js";
import { createTokenService, type TokenService, type TokenServiceOptions } from "../../src/token/service.js";

export const ISSUER = "https://box.example";

/** The whole token service over a memory store, without a port, with a clock that the test moves. */
export interface Box {
  readonly service: TokenService;
  readonly app: TokenApp;
  readonly audited: AuditEvent[];
  /** Milliseconds. */
  advance(ms: number): void;
  now(): number;
  fetch(url: string, init?: RequestInit): Promise<Response>;
}

const shared = new Map<string, Promise<{ publicKey: CryptoKey; privateKey: CryptoKey }>>();

/** To make an RSA key takes longer than most tests, so the boxes of a test file have the same first key, the same second, and so on. */
function sharedKeys() {
  let made = 0;
  return (algorithm: SigningAlgorithm) => {
    const name = `${algorithm} ${made++}`;
    const pair = shared.get(name) ?? generateKeyPair(algorithm, { extractable: true });
    shared.set(name, pair);
    return pair;
  };
}

export function createBox(options: Partial<TokenServiceOptions> & { startAt?: number } = {}): Box {
  let now = options.startAt ?? Date.UTC(2026, 10, 16, 10, 0, 0);
  const clock = { now: () => now };
  const audited: AuditEvent[] = [];
  const store = createMemoryStore({ now: clock.now });
  const service = createTokenService({
    documents: store.documents,
    issuer: ISSUER,
    clock,
    audit: (event) => audited.push(event),
    passwordCost: { n: 1024, r: 8, p: 1 },
    // A replica makes its own, because a ring has no key twice.
    ...(options.documents ? {} : { keys: { generateKey: sharedKeys() } }),
    ...options,
  });
  const app = createTokenApp(service);
  return {
    service,
    app,
    audited,
    advance: (ms) => {
      now += ms;
    },
    now: clock.now,
    fetch: async (url, init) => app.fetch(new Request(new URL(url, ISSUER), init)),
  };
}

export const basic = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`;

export const form = (authorization: string | null, fields: Record<string, string>): RequestInit => ({
  method: "POST",
  headers: {
    "Content-Type": "application/x-www-form-urlencoded",
    ...(authorization && { Authorization: authorization }),
  },
  body: new URLSearchParams(fields).toString(),
});

/** An application whose default client has a secret and a biometric scope. */
export async function createRuntimeClient({ service }: Box, gkScopes: string[] = ["scope-1"]) {
  const application = await service.applications.create({
    name: "Bank",
    environment: "production",
    geography: "eu",
    gkScopes,
  });
  const clientId = application.clients[0]!.id;
  return { application, clientId, secret: await service.applications.regenerateSecret(application.id, clientId) };
}
