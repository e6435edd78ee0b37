/** People of the crash campaign: each voice that is read back shows whose it is. */
import { mediaOf, processedOf, SCOPE, templateOf } from "./records.mjs";

export const idOf = (person) => `profile-${person}`;

export const voiceOf = (person, segment) => {
  const from = [...`${person}/${segment}`].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) >>> 0, 7);
  return Float32Array.from({ length: 256 }, (_, i) => Math.fround(Math.sin(from + i)));
};

export async function addSegment(store, person, segment, sessionId) {
  const mediaSegmentId = `media-${person}/${segment}`;
  const audio = new Uint8Array(4000).fill(segment);
  await store.media.add(mediaOf({ id: mediaSegmentId, sessionId, audio }));
  const processed = processedOf({
    id: `processed-${person}/${segment}`,
    sessionId,
    mediaSegmentId,
    voice: { windows: [], embedding: voiceOf(person, String(segment)) },
  });
  await store.processed.add(processed);
  const { generation } = await store.profiles.get(SCOPE, idOf(person));
  await store.profiles.addSegment(SCOPE, idOf(person), generation, { profileId: idOf(person), processed, addedAt: 1 });
}

/** `again`: with its segments, as retraining writes them. */
export async function train(store, person, again) {
  const { generation, printVersion } = await store.profiles.get(SCOPE, idOf(person));
  const template = templateOf(voiceOf(person, `template-${printVersion + 1}`));
  const renewed = again ? { segments: await store.profiles.segments(SCOPE, idOf(person)) } : {};
  await store.profiles.train(SCOPE, idOf(person), generation, {
    template,
    status: 2,
    printVersion: printVersion + 1,
    ...renewed,
  });
}
