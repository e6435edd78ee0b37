/**
 * Reads the memory of a box as a thief with a core file would. A person is enrolled, verified and identified, so that the voice is in caches,
 * galleries and the slots of the workers; then the person is erased, and the voice is searched for again.
 */
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import { pcm16Wav } from "../../dist/audio/wav-writer.js";
import { speak } from "../../dist/demo/voice.js";
import { openEmbeddedStore } from "../../dist/postgres.js";
import { startBoxProcess } from "./box.mjs";
import { callerOf, enroll, startCall, upload } from "./crash-box.mjs";

const PIECE_BYTES = 48;
const CHUNK_BYTES = 2 ** 22;
const NAME = "a-name-that-nobody-else-has-4711";
const OTHER = "somebody-else";
const SCOPE = "default";
/** Makes the C library overwrite freed memory (docs/PRIVACY.md), so that only memory in use is found. */
const OVERWRITE_FREED = { GLIBC_TUNABLES: "glibc.malloc.perturb=85:glibc.malloc.tcache_count=0" };

const recordingsOf = (speaker) =>
  [1, 2, 3].map((take) => pcm16Wav(speak({ speaker, seconds: 3, rateHz: 8000, seed: take }), 8000));

/** In how many places a piece was found before and after the erasure. */
export async function lookInMemory({ root, violate, log }) {
  const config = {
    port: 0,
    store: join(root, "box"),
    log: { level: "error" },
    auth: { required: false },
    limits: { callsPerSecond: 0, concurrentAudio: 1 },
  };
  const first = startBoxProcess(config);
  const call = callerOf(await first.started);
  const voices = { [NAME]: recordingsOf(1), [OTHER]: recordingsOf(2) };
  const profiles = {};
  for (const [name, recordings] of Object.entries(voices)) profiles[name] = await enrollPerson(call, name, recordings);
  const group = await createGroup(call, Object.values(profiles));
  first.process.kill("SIGKILL");
  await first.ended;

  const secrets = await secretsOf(config.store, profiles[NAME], voices[NAME]);
  const box = startBoxProcess(config, { env: OVERWRITE_FREED });
  try {
    const again = callerOf(await box.started);
    const check = (profile, recordings) => checkVoice(again, profile, group, recordings[0]);
    await check(profiles[NAME], voices[NAME]);
    const before = found(box.process.pid, secrets);
    if (!before.some(([what]) => what === "template"))
      violate("the template was not in memory before: the search finds nothing");
    await again("DELETE", `/v1/voiceprints/${profiles[NAME]}?context.gk_scope_id.value=${SCOPE}`);
    // Galleries drop a print before their next answer, and freed memory is reused.
    for (let round = 0; round < 3; round++) {
      await check(profiles[OTHER], voices[OTHER]);
      await box.ask("state");
    }
    const after = found(box.process.pid, secrets);
    // Strings are in the memory of the JavaScript engine, which cannot be overwritten (docs/PRIVACY.md).
    for (const [what, places] of after.filter(([what]) => what !== "name"))
      violate(`${what} of an erased person is in the memory of the box, ${places} times`);
    log(`memory: ${JSON.stringify(before)} before, ${JSON.stringify(after)} after`);
    return { before: Object.fromEntries(before), after: Object.fromEntries(after) };
  } finally {
    box.process.kill("SIGKILL");
    await box.ended;
  }
}

/** Read from the store while no box has it open. */
async function secretsOf(folder, profileId, recordings) {
  const store = await openEmbeddedStore(folder);
  const { template } = await store.profiles.get(SCOPE, profileId);
  const segments = await store.profiles.segments(SCOPE, profileId);
  await store.close();
  return [
    ["template", tellingPiece(template.embedding)],
    ...segments.map(({ processed }) => ["embedding", tellingPiece(processed.voice.embedding)]),
    ...recordings.map((recording) => ["audio", tellingPiece(recording)]),
    ["name", Buffer.from(NAME)],
  ];
}

/** The piece with the most different bytes: silence is found everywhere. */
function tellingPiece({ buffer, byteOffset, byteLength }) {
  const bytes = Buffer.from(buffer, byteOffset, byteLength);
  let [best, most] = [0, 0];
  for (let at = 0; at + PIECE_BYTES <= bytes.length; at += PIECE_BYTES) {
    const different = new Set(bytes.subarray(at, at + PIECE_BYTES)).size;
    if (different > most) [best, most] = [at, different];
  }
  return Buffer.from(bytes.subarray(best, best + PIECE_BYTES));
}

async function enrollPerson(call, name, recordings) {
  const context = await startCall(call);
  const created = await call("POST", "/v1/voiceprints/profiles", { context, person_id: name });
  const id = created.gkVoiceprintProfileId.value;
  for (const recording of recordings) await enroll(call, context, `/v1/voiceprints/${id}`, recording);
  await call("POST", `/v1/voiceprints/${id}/training`, { context });
  await call("POST", "/v1/sessions/stop", { context });
  return id;
}

async function createGroup(call, profileIds) {
  const context = await startCall(call);
  const gk_voiceprint_profile_ids = { unique_ids: profileIds.map((value) => ({ value })) };
  return (await call("POST", "/v1/groups", { context, gk_voiceprint_profile_ids })).gkGroupId;
}

async function checkVoice(call, profileId, group, recording) {
  const context = await startCall(call);
  const gk_media_segment_id = await upload(call, context, recording);
  await call("POST", `/v1/voiceprints/${profileId}/verification`, { context, gk_media_segment_id });
  await call("POST", "/v1/voiceprints/identification", { context, gk_media_segment_id, group: { unique_id: group } });
  await call("POST", "/v1/sessions/stop", { context });
}

/** How often each piece was found. */
function found(pid, secrets) {
  const counts = new Map();
  const memory = openSync(`/proc/${pid}/mem`, "r");
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for (const line of readFileSync(`/proc/${pid}/maps`, "utf8").split("\n")) {
    const range = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line);
    if (!range) continue;
    const [from, to] = [Number.parseInt(range[1], 16), Number.parseInt(range[2], 16)];
    // Pieces that span two chunks are found in the second.
    for (let at = from; at < to; at += CHUNK_BYTES - PIECE_BYTES) {
      let length = 0;
      try {
        length = readSync(memory, chunk, 0, Math.min(CHUNK_BYTES, to - at), at);
      } catch {
        // No longer mapped, or memory of the system.
        break;
      }
      const bytes = chunk.subarray(0, length);
      for (const [what, piece] of secrets)
        for (let i = bytes.indexOf(piece); i >= 0; i = bytes.indexOf(piece, i + piece.length))
          counts.set(what, (counts.get(what) ?? 0) + 1);
    }
  }
  closeSync(memory);
  return [...counts];
}
