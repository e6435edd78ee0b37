/** How high an operator's own genuine calls reach in the attack checks: what keeps the false-alarm rate on their lines. */
import { readFile } from "node:fs/promises";
import type { AttackKind, Engine } from "../engine/port.js";
import { attackHalfWidth } from "../voiceprint/decision.js";
import { type EvaluationParts, inParallel, mono } from "./evaluate.js";

/** A ratio, less what its reliability leaves open, exceeds location + scale · x at a rate of exp(-x). */
export interface FittedAttack {
  /** SHA-256 (hex) of the attack network that was listened to. */
  readonly revision: string;
  readonly location: number;
  readonly scale: number;
  /** Recordings with speech. */
  readonly recordings: number;
  /** 0..1: how far it went from the model's own towards what these recordings alone would give. */
  readonly weight: number;
}

/** The tail is read off the tenth that reaches highest, as for the model's own (training/spoof/rates.py). */
const top = 0.1;
const leastRecordings = 20;
/** Recordings at which one's own weigh as much as the model's. */
const evenRecordings = 100;
/** Few recordings may end alike by chance. */
const leastScale = 0.25;

export interface GenuineReach {
  readonly revision: string;
  readonly reach: readonly number[];
}

export interface HearingOptions {
  readonly concurrency: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (done: number) => void;
}

/** What every recording reaches in a check; files that cannot be read or hold no speech are passed over. */
export async function genuineReach(
  files: readonly string[],
  kind: AttackKind,
  { engine, decode }: Pick<EvaluationParts, "engine" | "decode">,
  { concurrency, signal, onProgress = () => {} }: HearingOptions,
): Promise<GenuineReach> {
  const reach: number[] = [];
  let revision = "";
  let done = 0;
  await inParallel(
    files.map((path) => ({ path })),
    concurrency,
    async ({ path }) => {
      signal?.throwIfAborted();
      const pcm = await readFile(path)
        .then((bytes) => decode(bytes, path))
        .then(mono)
        .catch(() => null);
      if (pcm) {
        const score = await engine.attack(kind, pcm.samples, pcm.rateHz, signal ? { signal } : {});
        revision = score.revision;
        if (score.reliability > 0) reach.push(score.llr - attackHalfWidth(score.reliability));
      }
      onProgress(++done);
    },
  );
  return { revision, reach };
}

/** The model's own location and scale, by rates so low that no threshold is the least. */
function ratiosOf(kind: AttackKind, engine: Pick<Engine, "attackThreshold">) {
  const [low, lower] = [1e-9, 1e-10] as const;
  const scale = (engine.attackThreshold(kind, lower) - engine.attackThreshold(kind, low)) / Math.LN10;
  return { location: engine.attackThreshold(kind, low) + scale * Math.log(low), scale };
}

/** `null` where the recordings are too few to say anything. */
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
