/**
 * A print that grows: beside what was enrolled it keeps the voices of later sessions as members, and is compared as their
 * mean. What was enrolled always has as much weight as all sessions together, and decides alone whether a session may join:
 * so a print cannot drift away from it, and an impostor who gets in once has a small share and no say in who joins next.
 */

/** What is known of one voice: the engine's `Voice`. */
export interface MemberVoice {
  readonly embedding: Float32Array;
  readonly netSpeechSeconds: number;
  readonly snrDb: number | null;
  readonly bandwidthHz: number | null;
}

export interface SessionMember extends MemberVoice {
  readonly sessionId: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export interface GrownPrint {
  /** As it was trained. */
  readonly enrolled: MemberVoice;
  /** Oldest first. */
  readonly sessions: readonly SessionMember[];
}

/**
 * The sessions after this one: of one session the voice with most speech stays; of more than `most`, the two that are most
 * alike lose the older one, so that those that stay tell most.
 */
export function withSession(
  sessions: readonly SessionMember[],
  joining: SessionMember,
  most: number,
): readonly SessionMember[] {
  const known = sessions.find(({ sessionId }) => sessionId === joining.sessionId);
  if (known && known.netSpeechSeconds >= joining.netSpeechSeconds) return sessions;
  const all = [...sessions.filter((one) => one !== known), joining];
  while (all.length > most) all.splice(redundant(all), 1);
  return all;
}

/** The older of the two that are most alike. */
function redundant(sessions: readonly SessionMember[]): number {
  let [found, highest] = [0, Number.NEGATIVE_INFINITY];
  for (let i = 0; i < sessions.length; i++)
    for (let j = i + 1; j < sessions.length; j++) {
      const alike = cosine(sessions[i]!.embedding, sessions[j]!.embedding);
      if (alike > highest) [found, highest] = [i, alike];
    }
  return found;
}

/** The voice that the print is compared as, once it may hold `most` sessions. */
export function grownVoice({ enrolled, sessions }: GrownPrint, most: number): MemberVoice {
  const share = 1 / Math.max(1, most, sessions.length);
  const members = [{ voice: enrolled, weight: 1 }, ...sessions.map((voice) => ({ voice, weight: share }))];
  const speech = [enrolled, ...sessions];
  return {
    embedding: meanEmbedding(members.map(({ voice, weight }) => ({ embedding: voice.embedding, weight }))),
    netSpeechSeconds: speech.reduce((sum, { netSpeechSeconds }) => sum + netSpeechSeconds, 0),
    snrDb: meanBySpeech(speech, ({ snrDb }) => snrDb),
    bandwidthHz: meanBySpeech(speech, ({ bandwidthHz }) => bandwidthHz),
  };
}

/** Weighted mean, unit length. Sums of doubles in the order given: the same bits everywhere. */
export function meanEmbedding(
  members: readonly { readonly embedding: Float32Array; readonly weight: number }[],
): Float32Array {
  const sum = new Float64Array(members[0]!.embedding.length);
  for (const { embedding, weight } of members) for (let i = 0; i < sum.length; i++) sum[i]! += embedding[i]! * weight;
  const length = Math.sqrt(sum.reduce((squares, x) => squares + x * x, 0)) || 1;
  return Float32Array.from(sum, (x) => x / length);
}

function meanBySpeech(voices: readonly MemberVoice[], measure: (voice: MemberVoice) => number | null): number | null {
  let [sum, weights] = [0, 0];
  for (const voice of voices) {
    const value = measure(voice);
    if (value === null) continue;
    sum += value * voice.netSpeechSeconds;
    weights += voice.netSpeechSeconds;
  }
  return weights > 0 ? sum / weights : null;
}

const cosine = (one: Float32Array, other: Float32Array): number => one.reduce((sum, x, i) => sum + x * other[i]!, 0);
