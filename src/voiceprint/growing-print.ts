/**
 * Adaptation: a print keeps the voices of later sessions beside the enrolled voice, and is compared as their mean. The
 * enrolled voice has at least as much weight as all sessions together, and alone decides whether a session may join. So a
 * print cannot drift away from it. The voice of an impostor who was accepted once has a small weight and does not influence
 * which sessions join next. It is left out as soon as two sessions of the real person disagree with it.
 */

/** One voice: the same fields as the engine's `Voice`. */
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
  /** The voice as it was trained. */
  readonly enrolled: MemberVoice;
  /** Oldest first. */
  readonly sessions: readonly SessionMember[];
}

/** Cosine of two sessions from which they have the same recording, even if it came over a line again. Two calls of a person are less alike. */
const sameRecording = 0.95;

/**
 * The sessions after `joining` is added. A session that joins twice keeps the voice with more speech. A recording that is played again in
 * another session gets no more weight: who was accepted once with it would be accepted every time. If there are more than
 * `most` sessions, the oldest is dropped. To drop the older of the two most similar ones instead is not more accurate, and a
 * wrong voice could stay forever.
 */
export function withSession(
  sessions: readonly SessionMember[],
  joining: SessionMember,
  most: number,
): readonly SessionMember[] {
  const known = sessions.find(({ sessionId }) => sessionId === joining.sessionId);
  if (known && known.netSpeechSeconds >= joining.netSpeechSeconds) return sessions;
  const others = sessions.filter((one) => one !== known);
  if (others.some(({ embedding }) => cosine(embedding, joining.embedding) >= sameRecording)) return sessions;
  return [...others, joining].slice(-most);
}

/** The voice to compare with, for a print that may hold up to `most` sessions. */
export function grownVoice(print: GrownPrint, most: number): MemberVoice {
  const { enrolled } = print;
  const sessions = agreeing(print);
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

/** A session that agrees less than this share of the others' agreement counts as another voice (bench:accuracy -- --adaptation). */
const leastAgreement = 0.85;
const fewestToDisagree = 3;

/** The sessions without the one that agrees least with the other members, if it agrees far less than they do. */
function agreeing({ enrolled, sessions }: GrownPrint): readonly SessionMember[] {
  if (sessions.length < fewestToDisagree) return sessions;
  const members = [enrolled, ...sessions];
  const agreement = members.map((one) =>
    mean(members.filter((other) => other !== one).map((other) => cosine(one.embedding, other.embedding))),
  );
  const least = 1 + agreement.slice(1).reduce((found, x, i, all) => (x < all[found]! ? i : found), 0);
  const others = mean(agreement.filter((_, i) => i !== least));
  return agreement[least]! < leastAgreement * others ? sessions.filter((_, i) => i !== least - 1) : sessions;
}

/** Weighted mean, scaled to unit length. Doubles are added in the given order, so the result has the same bits everywhere. */
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

const mean = (values: readonly number[]): number => values.reduce((sum, x) => sum + x, 0) / values.length;

const cosine = (one: Float32Array, other: Float32Array): number => one.reduce((sum, x, i) => sum + x * other[i]!, 0);
