/**
 * Many callers for a long time: calls of an IVR (session, upload, enrollment or check, end), reads, and people who are erased again. Other clients
 * send slowly, never read, disconnect in the middle, or come in bursts. Memory and descriptors must not grow, every answer must follow the
 * contract, the same voice must get the same decision, and neither a caller nor a small scope may starve beside the others.
 *
 * `--day` runs a whole day in that time, with a faster clock. Callers come and go as in a day, twice as many in the morning. Tokens expire
 * every 15 minutes, recordings after an hour, and at noon the clock is set forward by a quarter of a year: everything expires, and keys are renewed.
 */
import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pcm16Wav } from "../dist/audio/wav-writer.js";
import { speak } from "../dist/demo/voice.js";
import { startBoxProcess, tokenOf } from "./parts/box.mjs";
import { meanOf, unfairness, unjudgedFairness } from "./parts/fairness.mjs";
import { otherIssuer } from "./parts/other-issuer.mjs";
import { randomOf } from "./parts/random.mjs";

const SAMPLE_EVERY_MS = 5_000;
/** A token is valid for 900 s. */
const RENEW_MS = 300_000;
/** The time a caller waits before it counts as hung: longer than the box's own limit of a call. */
const HUNG_MS = 180_000;
/** How much memory may grow between the second and the last third of a run. */
const GROWTH = { share: 1.15, mb: 24 };
/** Allowed difference in connections before and after the callers. Files do not count, because the store keeps some open. */
const SOCKETS = { more: 5, withinMs: 120_000 };

/** Every fourth caller is of another scope: scopes take turns, so these must not wait behind the many. */
const SMALL_SCOPE = "small";
const SMALL_EVERY = 4;

/** In place of an answer: the data has expired, so a retry cannot help. */
const FORGOTTEN = {};
/** When each part of the day begins, and its share of the callers. */
const DAY = [
  { name: "night", from: 0, share: 0.05 },
  { name: "morning", from: 0.25, share: 2 },
  { name: "noon", from: 0.5, share: 0.6 },
  { name: "evening", from: 0.8, share: 0.2 },
];
const DAY_SECONDS = 86_400;

export async function campaign({
  seconds = 60,
  callers = 200,
  seed,
  store,
  day = false,
  log,
  isStopped = () => false,
}) {
  const clockSpeed = day ? DAY_SECONDS / seconds : 1;
  const most = day ? 2 * callers : callers;
  const folder = mkdtempSync(join(tmpdir(), "vivavoce-load-"));
  const config = {
    port: 0,
    store: store ?? join(folder, "store"),
    log: { level: "error" },
    limits: { callsPerSecond: 0, concurrentAudio: 1 },
    ...(day ? { mediaRetentionSeconds: 3600 } : {}),
  };
  // By the clock of a day, its tokens would expire at once.
  const issuer = day ? null : otherIssuer(folder);
  if (issuer) config.auth = { issuers: [issuer.config] };
  const running = startBoxProcess(config, { clockSpeed });
  const box = { ...running, ...(await running.started) };
  const violations = [];
  const violate = (text) => {
    if (violations.length < 1000) violations.push(text);
  };
  const counts = {
    calls: 0,
    answered: 0,
    checks: 0,
    busy: 0,
    late: 0,
    erased: 0,
    slow: 0,
    dead: 0,
    gone: 0,
    bursts: 0,
    closed: 0,
    expired: 0,
    forgotten: 0,
  };
  const tookMs = [];
  const recordings = [1, 2, 3].map((take) =>
    pcm16Wav(speak({ speaker: 1, seconds: 3, rateHz: 8000, seed: take }), 8000),
  );
  const strangers = pcm16Wav(speak({ speaker: 2, seconds: 3, rateHz: 8000, seed: 9 }), 8000);
  let token = await tokenOf(box.url, box.application);
  const isSmall = (index) => issuer !== null && index % SMALL_EVERY === 0;
  let smallToken = await issuer?.token(SMALL_SCOPE);
  // What comes before takes seconds on a busy machine, and is not part of the run.
  const startedAt = performance.now();
  const until = startedAt + seconds * 1000;
  const partOfDay = () => {
    const now = (performance.now() - startedAt) / (seconds * 1000);
    return DAY.findLast(({ from }) => now >= from);
  };
  const isThere = (index) => !day || index < partOfDay().share * callers;
  const isOver = () => performance.now() >= until || isStopped();
  const agent = new http.Agent({ keepAlive: true, maxSockets: most + 50 });
  // One request for all callers: in a short day, a token that waits behind a hundred others would expire before it arrives.
  let renewal = null;
  const renew = () => {
    renewal ??= tokenOf(box.url, box.application)
      .then(async (renewed) => {
        token = renewed;
        smallToken = await issuer?.token(SMALL_SCOPE);
      })
      .catch(() => {})
      .finally(() => {
        renewal = null;
      });
    return renewal;
  };
  const renewing = setInterval(renew, RENEW_MS / clockSpeed);

  /** `null` when the box is busy; an answer outside the contract is a violation. */
  async function call(scope, method, path, body, type = "application/json") {
    counts.calls++;
    const from = performance.now();
    const { status, json, retryAfter, isLostReuse } = await send({
      agent,
      url: box.url,
      token: scope === SMALL_SCOPE ? smallToken : token,
      method,
      path,
      body,
      type,
    });
    if (status === 200 && json?.status?.statusCode === "OK") {
      counts.answered++;
      tookMs.push(performance.now() - from);
      return json;
    }
    const code = json?.status?.statusCode;
    if ((status === 503 && code === "BUSY") || (status === 429 && code === "RATE_EXCEEDED")) {
      counts.busy++;
      await sleep(Math.min(30, Number(retryAfter ?? 1)) * 1000 * (0.75 + Math.random() / 2));
      return null;
    }
    if (status === 504 && code === "DEADLINE_EXCEEDED") {
      counts.late++;
      return null;
    }
    // In a day that passes in minutes, a token may expire during a request.
    if (day && status === 401) {
      counts.expired++;
      await renew();
      await sleep(100);
      return null;
    }
    // By that clock a call of a few seconds lasts for an hour, and one at noon for a quarter of a year, so its audio model has expired.
    if (day && status === 404 && /no longer kept|no processed audio/.test(json?.status?.message)) {
      counts.forgotten++;
      return FORGOTTEN;
    }
    // Either side may close an idle connection just as a request is sent; by HTTP, the client retries.
    if (isLostReuse) counts.closed++;
    else if (!isOver() || status !== 0)
      violate(`${method} ${path.split("?")[0]}: ${status} ${JSON.stringify(json)?.slice(0, 200)}`);
    return null;
  }
  const askerOf =
    (scope) =>
    async (...request) => {
      for (let tries = 0; tries < 50; tries++) {
        const answer = await call(scope, ...request);
        if (answer || isOver()) return answer;
      }
      return null;
    };

  const perCaller = new Array(most).fill(0);

  async function caller(index) {
    const random = randomOf(seed * 1_000_003 + index);
    await sleep((index / most) * Math.min(10_000, seconds * 100));
    while (!isOver()) {
      if (!isThere(index)) {
        await sleep(500);
        continue;
      }
      const scopeId = isSmall(index) ? SMALL_SCOPE : "default";
      const again = askerOf(scopeId);
      const scope = { gk_scope_id: { value: scopeId } };
      const started = await again("POST", "/v1/sessions/start", { context: scope, session_type: 2 });
      if (!started) continue;
      const context = {
        ...scope,
        gk_session_id: started.gkSessionId,
        gk_engagement_id: started.gkEngagementId,
        configset_id: "ivr-text-dependent",
      };
      await conversation(random, context, index, again);
      await again("POST", "/v1/sessions/stop", { context });
      perCaller[index]++;
      await sleep(random.below(2_000));
    }
  }

  async function conversation(random, context, index, again) {
    const query = `context.gk_scope_id.value=${context.gk_scope_id.value}&context.gk_session_id.value=${context.gk_session_id.value}&context.gk_engagement_id.value=${context.gk_engagement_id.value}`;
    const upload = async (bytes) =>
      (await again("POST", `/v1/audios?${query}`, bytes, "audio/wav"))?.gkMediaSegmentId ?? null;
    const person = `caller-${index}-${random.below(1e9)}`;
    const created = await again("POST", "/v1/voiceprints/profiles", { context, person_id: person });
    if (!created) return;
    const id = created.gkVoiceprintProfileId.value;
    if (random.chance(0.5)) {
      await again("GET", `/v1/voiceprints/${id}/enrollment-status?${query}&context.configset_id=ivr-text-dependent`);
    } else {
      for (const recording of recordings) {
        if (isOver()) return;
        const media = await upload(recording);
        if (!media) return;
        const processed = await again("POST", "/v1/audios/process", {
          context,
          gk_media_segment_id: media,
          is_for_enrollment: true,
        });
        const audio = processed?.result?.gkProcessedAudioId;
        if (audio) await again("POST", `/v1/voiceprints/${id}/enrollment`, { context, gk_processed_audio_id: audio });
      }
      const trained = await again("POST", `/v1/voiceprints/${id}/training`, { context });
      const isOwn = random.chance(0.5);
      const media = await upload(isOwn ? recordings[0] : strangers);
      if (trained?.result?.trainStatus === "TRAIN_STATUS_TRAINED" && media) {
        const checked = await again("POST", `/v1/voiceprints/${id}/verification`, {
          context,
          gk_media_segment_id: media,
        });
        if (checked?.result) counts.checks++;
        const { decision } = checked?.result ?? {};
        if (decision && (decision === "DECISION_FAILED" || (decision === "DECISION_AUTHENTIC") !== isOwn))
          violate(`${isOwn ? "the person's own" : "a stranger's"} voice: ${JSON.stringify(checked.result)}`);
      }
    }
    if (await again("DELETE", `/v1/voiceprints/${id}?${query}`)) counts.erased++;
  }

  /** Ill-behaved clients: each opens a connection and misuses it; the box must close it in the end. */
  async function mischief(random) {
    while (!isOver()) {
      await sleep(500 + random.below(2_000));
      const socket = net.connect(Number(new URL(box.url).port), "127.0.0.1");
      socket.on("error", () => {});
      const head = `POST /v1/audios?context.gk_scope_id.value=default HTTP/1.1\r\nhost: box\r\nauthorization: Bearer ${token}\r\ncontent-type: audio/wav\r\n`;
      switch (random.pick(["slow", "dead", "gone", "burst"])) {
        case "slow":
          counts.slow++;
          socket.write(`${head}content-length: 100000\r\n\r\n`);
          for (let i = 0; i < 20 && !isOver() && !socket.destroyed; i++) {
            socket.write("x");
            await sleep(500);
          }
          break;
        case "dead":
          counts.dead++;
          socket.pause();
          socket.write("GET / HTTP/1.1\r\nhost: box\r\n\r\n".repeat(50));
          await sleep(10_000);
          break;
        case "gone":
          counts.gone++;
          socket.write(`${head}transfer-encoding: chunked\r\n\r\n400\r\n${"y".repeat(500)}`);
          await sleep(random.below(50));
          break;
        case "burst":
          counts.bursts++;
          await Promise.all(
            Array.from({ length: 100 }, () =>
              send({ agent, url: box.url, token: "", method: "GET", path: "/healthz" }),
            ),
          );
          break;
      }
      socket.destroy();
    }
  }

  async function quarterAtNoon() {
    while (!isOver() && partOfDay().name !== "noon") await sleep(500);
    if (isOver()) return;
    const keysBefore = await signingKeys(box.url);
    await box.ask("jumpQuarter");
    await renew();
    const keys = await signingKeys(box.url);
    if (keys.length === 0 || keys.every((key) => keysBefore.includes(key)))
      violate(`no new signing key after a quarter of a year: ${keysBefore} before, ${keys} after`);
  }

  const samples = [];
  async function sample() {
    while (!isOver()) {
      try {
        samples.push(await box.ask("state"));
      } catch {
        return; // The box ended; this is reported below.
      }
      await sleep(Math.min(SAMPLE_EVERY_MS, seconds * 50));
    }
  }
  const telling = setInterval(() => {
    const last = samples.at(-1);
    log(
      `${Math.round((until - performance.now()) / 1000)} s left: ${JSON.stringify(counts)} ${Math.round(last?.rssMb ?? 0)} MB ${last?.descriptors} descriptors`,
    );
  }, 60_000);
  const { sockets: openBefore } = await box.ask("state");
  const work = [
    ...Array.from({ length: most }, (_, i) => caller(i)),
    ...(day ? [quarterAtNoon()] : []),
    sample(),
    ...Array.from({ length: 4 }, (_, i) => mischief(randomOf(seed + i))),
  ];
  const died = box.ended.then(({ code, signal, log: text }) =>
    violate(`the box ended (${code ?? signal}): ${text.slice(-500)}`),
  );
  await Promise.race([Promise.all(work), died]);
  clearInterval(telling);
  clearInterval(renewing);
  agent.destroy();
  const openAfter = await settled(box, openBefore + SOCKETS.more);
  if (openAfter > openBefore + SOCKETS.more)
    violate(`${openBefore} connections were open before the callers came, ${openAfter} after they had gone`);
  const errors = box
    .log()
    .split("\n")
    .filter((line) => line.includes('"level":"error"'));
  for (const line of errors.slice(0, 20)) violate(`the log says: ${line.slice(0, 300)}`);
  if (box.process.connected) {
    if (!(await box.ask("stop"))) violate("the box did not stop cleanly");
    await box.ended;
    violations.splice(0, violations.length, ...violations.filter((text) => !/^the box ended \(0\)/.test(text)));
  }
  rmSync(folder, { recursive: true, force: true });

  if (counts.answered === 0 && !isStopped()) violate("no call was answered");
  const flat = judgeGrowth(samples, seconds, violate);
  tookMs.sort((a, b) => a - b);
  const quantile = (share) => Math.round(tookMs[Math.floor(share * (tookMs.length - 1))] ?? 0);
  if (quantile(0.99) > HUNG_MS) violate(`p99 is ${quantile(0.99)} ms`);
  // In a day, callers are there only for parts of it.
  const fair = day ? null : [Math.min(...perCaller), Math.max(...perCaller)];
  const ofScope = (small) => perCaller.filter((_, index) => isSmall(index) === small);
  const scopes = { large: ofScope(false), small: ofScope(true) };
  if (!day && !isStopped()) unfairness(scopes).forEach(violate);
  return {
    counts: {
      callers,
      ...counts,
      medianMs: quantile(0.5),
      p99Ms: quantile(0.99),
      slowestMs: quantile(1),
      ...flat,
      sockets: [openBefore, openAfter],
      ...(fair && {
        conversationsOfACaller: fair,
        meanByScope: Object.values(scopes).map((conversations) => Number(meanOf(conversations).toFixed(1))),
        notJudged: isStopped() ? "fairness: the run was stopped" : unjudgedFairness(scopes),
      }),
    },
    violations,
  };
}

/** The number of open connections once the box has closed the others, or when time is up. */
async function settled(box, enough) {
  for (const until = performance.now() + SOCKETS.withinMs; box.process.connected; await sleep(1_000)) {
    const { sockets } = await box.ask("state");
    if (sockets <= enough || performance.now() > until) return sockets;
  }
  return 0;
}

/** Only a run that is long enough to have warmed up is judged. */
function judgeGrowth(samples, seconds, violate) {
  const third = Math.floor(samples.length / 3);
  const least = (part, name) => Math.min(...part.map((sample) => sample[name]));
  const middle = samples.slice(third, 2 * third);
  const last = samples.slice(2 * third);
  if (third === 0) return {};
  const [liveFrom, liveTo] = [least(middle, "liveMb"), least(last, "liveMb")];
  if (seconds >= 300) {
    if (liveTo > liveFrom * GROWTH.share + GROWTH.mb) violate(`memory grew from ${liveFrom} to ${liveTo} MB`);
  }
  const round = (value) => Math.round(value);
  return {
    liveMb: [round(liveFrom), round(liveTo)],
    mostRssMb: round(Math.max(...samples.map(({ rssMb }) => rssMb))),
    mostDescriptors: Math.max(...samples.map(({ descriptors }) => descriptors)),
  };
}

function send({ agent, url, token, method, path, body, type }) {
  return new Promise((resolve) => {
    const payload = body === undefined ? undefined : body instanceof Uint8Array ? body : JSON.stringify(body);
    const request = http.request(`${url}${path}`, {
      agent,
      method,
      headers: {
        ...(token ? { authorization: `Bearer ${token}` } : {}),
        ...(payload === undefined ? {} : { "content-type": type, "content-length": Buffer.byteLength(payload) }),
      },
    });
    request.setTimeout(HUNG_MS, () => request.destroy(new Error(`no answer within ${HUNG_MS} ms`)));
    request.once("error", (error) =>
      resolve({
        status: 0,
        json: { error: error.message },
        isLostReuse: request.reusedSocket && /ECONNRESET|EPIPE|socket hang up/.test(`${error.code} ${error.message}`),
      }),
    );
    request.once("response", (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.once("error", (error) => resolve({ status: 0, json: { error: error.message } }));
      response.once("end", () => {
        let json = null;
        try {
          json = JSON.parse(Buffer.concat(chunks).toString());
        } catch {
          // Not JSON: the caller sees null.
        }
        resolve({ status: response.statusCode, json, retryAfter: response.headers["retry-after"] });
      });
    });
    request.end(payload);
  });
}

/** Ids of the keys that the box publishes. */
async function signingKeys(url) {
  const { jwks_uri } = await (await fetch(`${url}/.well-known/oauth-authorization-server`)).json();
  const { keys } = await (await fetch(jwks_uri)).json();
  return keys.map(({ kid }) => kid);
}

const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));
