/** Kills whole boxes, one after the other on the same folder, driven over HTTP. What a box has answered must be listed after the next start. */
import { pcm16Wav } from "../../dist/audio/wav-writer.js";
import { speak } from "../../dist/demo/voice.js";
import { startBoxProcess } from "./box.mjs";

const SCOPE = { gk_scope_id: { value: "default" } };
const QUERY = "context.gk_scope_id.value=default";
const RECORDINGS = [1, 2, 3].map((take) => pcm16Wav(speak({ speaker: 1, seconds: 3, rateHz: 8000, seed: take }), 8000));

export async function boxLane({ location, random, isOver, isTurn, counts, violate }) {
  /** By name: the known state of the person, and the state after the operation in progress. `null`: does not exist. */
  const people = new Map();
  for (let round = 1; !isOver(); round++) {
    while (!isTurn()) await new Promise((wake) => setTimeout(wake, 500));
    counts.starts++;
    const early = random.chance(0.15) ? random.below(2_500) : null;
    const starting = startBoxProcess({
      port: 0,
      store: location,
      log: { level: "error" },
      auth: { required: false },
      limits: { callsPerSecond: 0, concurrentAudio: 1 },
    });
    const { process: child, ended, started } = starting;
    if (early !== null) setTimeout(() => child.kill("SIGKILL"), early);
    const box = await started.catch(() => null);
    if (box) {
      await drive(box, { people, round, random, counts, violate, kill: () => child.kill("SIGKILL") });
      child.kill("SIGKILL");
    }
    const { code, signal, log } = await ended;
    if (signal !== "SIGKILL") violate(`box: ended by itself (${code}): ${log.slice(-500)}`);
    counts.kills++;
    counts.killsOfBox++;
    if (!box) counts.killsAtStart++;
  }
}

/** Calls a box over HTTP; a refusal is thrown as an error with the answer. */
export const callerOf =
  ({ url }) =>
  async (method, path, body, type = "application/json") => {
    const payload = body === undefined || body instanceof Uint8Array ? body : JSON.stringify(body);
    const response = await fetch(`${url}${path}`, {
      method,
      body: payload,
      // A connection that stays open keeps its last data in memory.
      headers: { connection: "close", ...(body ? { "content-type": type } : {}) },
    });
    const json = await response.json();
    if (!response.ok) throw Object.assign(new Error(`${method} ${path}: ${response.status}`), { answer: json });
    return json;
  };

export async function startCall(call) {
  const { gkSessionId, gkEngagementId } = await call("POST", "/v1/sessions/start", { context: SCOPE, session_type: 2 });
  return {
    ...SCOPE,
    gk_session_id: gkSessionId,
    gk_engagement_id: gkEngagementId,
    configset_id: "ivr-text-dependent",
  };
}

/** The id of the recording. */
export async function upload(call, { gk_session_id, gk_engagement_id }, recording) {
  const session = `${QUERY}&context.gk_session_id.value=${gk_session_id.value}&context.gk_engagement_id.value=${gk_engagement_id.value}`;
  return (await call("POST", `/v1/audios?${session}`, recording, "audio/wav")).gkMediaSegmentId;
}

export async function enroll(call, context, path, recording) {
  const gk_media_segment_id = await upload(call, context, recording);
  const { result } = await call("POST", "/v1/audios/process", {
    context,
    gk_media_segment_id,
    is_for_enrollment: true,
  });
  await call("POST", `${path}/enrollment`, { context, gk_processed_audio_id: result.gkProcessedAudioId });
}

async function drive(box, { people, round, random, counts, violate, kill }) {
  const call = callerOf(box);
  try {
    await compare(await listed(call), people, counts, violate);
    setTimeout(kill, random.below(3_000));
    for (let number = 1; ; number++) await work(call, `b${round}-${number}`, people, random, counts);
  } catch (error) {
    // A refusal is a violation; no answer at all is normal for a killed box.
    if (error.answer) violate(`box: ${error.message} ${JSON.stringify(error.answer).slice(0, 200)}`);
  }
}

async function listed(call) {
  const found = new Map();
  for (let token = ""; ; ) {
    const page = await call("GET", `/v1/voiceprints/profiles?${QUERY}&page_size=500&page_token=${token}`);
    for (const { ownerId, printVersion = 0, consent } of page.profiles ?? [])
      found.set(ownerId, { printVersion, consent: consent?.state ?? null });
    if (!page.nextPageToken) return found;
    token = page.nextPageToken;
  }
}

const same = (one, other) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null);

function compare(found, people, counts, violate) {
  for (const [person, { is, pending }] of people) {
    const now = found.get(person) ?? null;
    if (is === null) counts.erasedSought++;
    else counts.readBack++;
    if (!same(now, is) && !(pending !== undefined && same(now, pending)))
      violate(`box: ${person} is ${JSON.stringify(now)}, not ${JSON.stringify(is)} nor ${JSON.stringify(pending)}`);
    people.set(person, { is: now });
  }
  for (const person of found.keys()) if (!people.has(person)) violate(`box: ${person} was never enrolled`);
}

async function work(call, person, people, random, counts) {
  /** Records the expected state before the request, and that it holds after the answer. */
  const step = async (pending, request) => {
    people.set(person, { is: people.get(person)?.is ?? null, pending });
    const answer = await request();
    people.set(person, { is: pending });
    counts.acknowledged++;
    return answer;
  };
  const context = await startCall(call);
  const created = await step({ printVersion: 0, consent: null }, () =>
    call("POST", "/v1/voiceprints/profiles", { context, person_id: person }),
  );
  const path = `/v1/voiceprints/${created.gkVoiceprintProfileId.value}`;
  let printVersion = 0;
  if (random.chance(0.3)) {
    for (const recording of RECORDINGS) await enroll(call, context, path, recording);
    printVersion = 1;
    await step({ printVersion, consent: null }, () => call("POST", `${path}/training`, { context }));
  }
  if (random.chance(0.4)) {
    const state = random.pick(["CONSENT_STATE_GIVEN", "CONSENT_STATE_WITHDRAWN"]);
    await step({ printVersion, consent: state }, () => call("POST", `${path}/consent`, { context, state }));
  }
  if (random.chance(0.6)) await step(null, () => call("DELETE", `${path}?${QUERY}`));
  await call("POST", "/v1/sessions/stop", { context });
}
