/** Upper tail of an operator's own genuine calls in the attack checks: keeps the false-alarm rate on their lines. */
import { createHash } from "node:crypto";
import type { AttackKind, Engine } from "../engine/port.js";
import { attackHalfWidth } from "../voiceprint/decision.js";
import { bytesOfFile, type EvaluationParts, inParallel, mono, type Pcm } from "./evaluate.js";
import type { CachedAttack } from "./voice-cache.js";

/** A ratio, less the margin for low reliability, exceeds location + scale · x at a rate of exp(-x). */
export interface FittedAttack {
  /** SHA-256 (hex) of the attack network that scored the recordings. */
  readonly revision: string;
  readonly location: number;
  readonly scale: number;
  /** Recordings with speech. */
  readonly recordings: number;
  /** 0..1: how far the fit moved from the model's own values towards those of these recordings alone. */
  readonly weight: number;
}

/** The tail is fitted to the highest tenth, as for the model's own (training/spoof/rates.py). */
const top = 0.1;
export const leastRecordings = 20;
/** Number of recordings at which they weigh as much as the model's own values. */
const evenRecordings = 100;
/** Lower limit, because a few recordings may be alike by chance. */
const leastScale = 0.25;

export interface GenuineReach {
  readonly revision: string;
  readonly reach: readonly number[];
}

/** The ratio of every recording in a check of this model; unreadable files and files without speech are skipped. */
export async function genuineReach(
  files: readonly string[],
  kind: AttackKind,
  modelDigest: string,
  parts: EvaluationParts,
  { concurrency, signal, onProgress }: { concurrency: number; signal: AbortSignal; onProgress: (done: number) => void },
): Promise<GenuineReach> {
  const reach: number[] = [];
  let revision = "";
  let done = 0;
  await inParallel(files, concurrency, async (path) => {
    signal.throwIfAborted();
    const score = await attackOfFile(path, kind, modelDigest, parts, signal);
    if (score) {
      revision = score.revision;
      if (score.reliability > 0) reach.push(score.llr - attackHalfWidth(score.reliability));
    }
    onProgress(++done);
  });
  return { revision, reach };
}

async function attackOfFile(
  path: string,
  kind: AttackKind,
  modelDigest: string,
  { engine, decode, cache }: EvaluationParts,
  signal: AbortSignal,
): Promise<CachedAttack | null> {
  const bytes = await bytesOfFile(path).catch(() => null);
  if (!bytes) return null;
  const key = [createHash("sha256").update(bytes).digest("hex"), modelDigest, kind].join(" ");
  const known = cache.attack(key);
  if (known) return known;
  const pcm = await pcmOf(bytes, path, decode);
  if (!pcm) return null;
  const score = await engine.attack(kind, pcm.samples, pcm.rateHz, { signal });
  await cache.putAttack(key, score);
  return score;
}

async function pcmOf(bytes: Uint8Array, path: string, decode: EvaluationParts["decode"]): Promise<Pcm | null> {
  try {
    return mono(await decode(bytes, path));
  } catch {
    return null;
  }
}

/** The model's own location and scale, from rates so low that the lower limit of thresholds does not apply. */
function ratiosOf(kind: AttackKind, engine: Pick<Engine, "attackThreshold">) {
  const [low, lower] = [1e-9, 1e-10] as const;
  const scale = (engine.attackThreshold(kind, lower) - engine.attackThreshold(kind, low)) / Math.LN10;
  return { location: engine.attackThreshold(kind, low) + scale * Math.log(low), scale };
}

/** Share of the recordings that exceed the model's own threshold for a false-alarm rate. */
export const alarmRate = (
  { reach }: GenuineReach,
  kind: AttackKind,
  engine: Pick<Engine, "attackThreshold">,
  rate: number,
): number => {
  const threshold = engine.attackThreshold(kind, rate);
  return reach.filter((value) => value >= threshold).length / Math.max(1, reach.length);
};

/** `null` if there are too few recordings. */
export function fitAttack(
  { revision, reach }: GenuineReach,
  kind: AttackKind,
  engine: Pick<Engine, "attackThreshold">,
): FittedAttack | null {
  const recordings = reach.length;
  if (recordings < leastRecordings) return null;
  const model = ratiosOf(kind, engine);
  const own = model.location - model.scale * Math.log(top);
  const sorted = reach.toSorted((a, b) => b - a);
  const count = Math.ceil(top * recordings);
  const edge = sorted[count]!;
  const excess = sorted.slice(0, count).reduce((sum, value) => sum + value - edge, 0) / count;
  const weight = recordings / (recordings + evenRecordings);
  const scale = model.scale * Math.max(leastScale, excess / model.scale) ** weight;
  const at = own + weight * (edge - own);
  return { revision, location: at + scale * Math.log(top), scale, recordings, weight };
}
