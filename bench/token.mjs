// Cost of tokens: requests per second on one core, and verification per call, compared with common libraries.
// Part of `npm run bench:server` (alone: `-- --only token`). Measures processor time including threads, so other load on the machine does not count.
import { createLocalJWKSet, jwtVerify } from "jose";
import { createMemoryStore } from "../dist/store/memory.js";
import { createTokenApp, createTokenService, createVerifier } from "../dist/token/index.js";
import { answerOf, nodePair } from "../dist/token/interactive/node-bridge.js";
import { atLeast, atMost, median } from "./measure.mjs";

const ISSUER = "https://box.example";
const DISTINCT_TOKENS = 2_500;

/** Processor milliseconds of `work`, divided by how often it ran. */
async function cpuMs(times, work) {
  const before = process.cpuUsage();
  for (let i = 0; i < times; i++) await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / times;
}

/** Wall-clock times of single calls, sorted. */
async function latencies(times, work) {
  const all = [];
  for (let i = 0; i < times; i++) {
    const start = performance.now();
    await work();
    all.push(performance.now() - start);
  }
  return all.sort((a, b) => a - b);
}

async function ours() {
  const service = createTokenService({ documents: createMemoryStore().documents, issuer: ISSUER });
  const application = await service.applications.create({
    name: "bench",
    environment: "bench",
    geography: "local",
    gkScopes: ["default"],
  });
  const clientId = application.clients[0].id;
  const secret = await service.applications.regenerateSecret(application.id, clientId);
  const app = createTokenApp(service);
  const authorization = `Basic ${btoa(`${encodeURIComponent(clientId)}:${secret}`)}`;
  const request = async () => {
    const response = await app.fetch(
      new Request(`${ISSUER}/oauth2/token`, {
        method: "POST",
        headers: { authorization, "content-type": "application/x-www-form-urlencoded" },
        body: "grant_type=client_credentials&scope=bio",
      }),
    );
    if (response.status !== 200) throw new Error(`token request: ${response.status}`);
    return (await response.json()).access_token;
  };
  return { service, request };
}

/** The same grant with oidc-provider: same algorithm and format, its memory adapter. */
async function peer() {
  const { Provider } = await import("oidc-provider");
  const { generateKeyPair, exportJWK } = await import("jose");
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  const provider = new Provider(ISSUER, {
    clients: [
      {
        client_id: "c",
        client_secret: "s".repeat(43),
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
        id_token_signed_response_alg: "RS256",
      },
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: "k", use: "sig", alg: "RS256" }] },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => "urn:bench",
        getResourceServerInfo: () => ({
          scope: "bio",
          audience: "bench",
          accessTokenFormat: "jwt",
          accessTokenTTL: 900,
          jwt: { sign: { alg: "RS256" } },
        }),
      },
    },
    ttl: { ClientCredentials: 900 },
  });
  const handler = provider.callback();
  const authorization = `Basic ${btoa(`c:${"s".repeat(43)}`)}`;
  return async () => {
    const raw = new Request(`${ISSUER}/token`, {
      method: "POST",
      headers: { authorization, "content-type": "application/x-www-form-urlencoded" },
    });
    const { incoming, outgoing } = nodePair(raw, ISSUER, "grant_type=client_credentials&scope=bio");
    const response = await answerOf(handler, incoming, outgoing);
    if (response.status !== 200) throw new Error(`peer's token request: ${response.status} ${await response.text()}`);
    return (await response.json()).access_token;
  };
}

async function benchToken({ requests = 300, verifications = 2000, rounds = 5 } = {}) {
  const { service, request } = await ours();
  const firstMs = await cpuMs(1, request);
  const peerRequest = await peer();
  // More tokens than a verifier caches, in turn: each is checked as if it were new.
  const tokens = [];
  for (let i = 0; i < DISTINCT_TOKENS; i++) tokens.push(await request());
  let turn = 0;
  const token = () => tokens[turn++ % tokens.length];
  const verifier = createVerifier({ issuers: [service.runtimeIssuer] });
  const verify = () => verifier.verify(token(), "bio");
  const verifyAgain = () => verifier.verify(tokens[0], "bio");
  const keys = createLocalJWKSet(await service.keyring.jwks());
  const bareVerify = () =>
    jwtVerify(token(), keys, {
      issuer: ISSUER,
      audience: service.audiences.runtime,
      algorithms: ["RS256"],
      typ: "at+jwt",
    });
  for (const warmUp of [request, peerRequest, verify, bareVerify]) await cpuMs(200, warmUp);

  // Interleaved, so that disturbances affect both.
  const request_ = [];
  const verify_ = [];
  for (let round = 0; round < rounds; round++) {
    request_.push({ ours: await cpuMs(requests, request), peer: await cpuMs(requests, peerRequest) });
    verify_.push({ ours: await cpuMs(verifications, verify), peer: await cpuMs(verifications, bareVerify) });
  }
  const wall = await latencies(verifications, verify);
  await verifyAgain();
  const again = await latencies(verifications, verifyAgain);
  const at = (share) => wall[Math.floor(wall.length * share)];
  return {
    tokenRequests: {
      perCoreSecond: 1000 / median(request_.map((one) => one.ours)),
      firstRequestCpuMs: firstMs,
      peer: "oidc-provider, client credentials, the same JWT",
      timesPeer: median(request_.map((one) => one.peer / one.ours)),
    },
    verification: {
      cpuMs: median(verify_.map((one) => one.ours)),
      medianMs: at(0.5),
      p95Ms: at(0.95),
      againMs: median(again),
      peer: "jose jwtVerify alone",
      timesPeer: median(verify_.map((one) => one.ours / one.peer)),
    },
  };
}

/** Rows for `npm run bench:server`. */
export default async function measure() {
  const { tokenRequests, verification } = await benchToken();
  return [
    atLeast(
      "token requests",
      tokenRequests.peer,
      tokenRequests.timesPeer,
      1,
      `${tokenRequests.perCoreSecond.toFixed(0)} a second on one core; the first took ${tokenRequests.firstRequestCpuMs.toFixed(0)} ms of CPU (key)`,
    ),
    atMost(
      "verifying a token, median",
      verification.peer,
      verification.medianMs,
      0.2,
      `p95 ${verification.p95Ms.toFixed(3)} ms, CPU ${verification.cpuMs.toFixed(3)} ms, ${verification.timesPeer.toFixed(2)}× the peer's; one seen lately ${verification.againMs.toFixed(3)} ms`,
      " ms",
    ),
  ];
}
