/** Engine, browser store and easy door, connected for the page. This is the large part, so it loads in the background. */
import { AudioError, type AudioErrorCode } from "../audio/audio-error.js";
import { readRecording } from "../audio/index.js";
import { joined } from "../audio/joined.js";
import { toWav } from "../audio/to-wav.js";
import { openEngine } from "../engine/index.js";
import type { Engine, Score, Template } from "../engine/port.js";
import { openVoiceprints } from "../index.js";
import { isDamage } from "../store/damaged-profiles.js";
import { openIndexedDbStore } from "../store/indexeddb/store.js";
import { builtInConfigurationSets, defaultConfigurationSetId } from "../voiceprint/configuration-set.js";
import { rateOfOneComparison } from "../voiceprint/decision.js";
import { impostorsOnList } from "../voiceprint/list-impostors.js";
import type { Voiceprints } from "../voiceprints.js";
import type { Limits } from "./advice.js";
import type { AttackFinding } from "./attack-list.js";

/**
 * A page may name its own calibration in addition to its model: <meta name="vivavoce-calibration" content="calibration.json">.
 * A box writes its calibration into the page as a `data:` address, which needs no network.
 */
function calibrationOfPage(): { calibration?: string | Uint8Array } {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="vivavoce-calibration"]');
  if (!meta) return {};
  const inline = /^data:application\/json;base64,(.*)$/.exec(meta.content)?.[1];
  if (inline === undefined) return { calibration: new URL(meta.content, document.baseURI).href };
  return { calibration: Uint8Array.from(atob(inline), (character) => character.charCodeAt(0)) };
}

export interface Samples {
  readonly samples: Float32Array;
  readonly rateHz: number;
}

export interface KnownPerson {
  readonly name: string;
  /** `null` until the print is trained with the page's model. */
  readonly template: Template | null;
  /** The print was trained with another model (that of the page before an upgrade, or after it), or what is stored of it was altered. */
  readonly fault: "obsolete" | "damaged" | null;
  /** How many recordings the print has that the page's model can use. */
  readonly recordings: number;
  readonly createdAt: number;
}

const scope = "default";
const set = builtInConfigurationSets[defaultConfigurationSetId]!;
/** A longer file is probably a mistake, and would block the page. */
const longestSeconds = 600;

interface Closable {
  close(): Promise<void>;
}

/** Both, or none: if one fails, the other is closed, so that no workers stay behind when the person tries again. */
async function bothOf<One extends Closable, Other extends Closable>(
  one: Promise<One>,
  other: Promise<Other>,
): Promise<[One, Other]> {
  try {
    return await Promise.all([one, other]);
  } catch (error) {
    for (const opened of await Promise.allSettled([one, other]))
      if (opened.status === "fulfilled") await opened.value.close();
    throw error;
  }
}

/** Parses a duration as JSON has it: `"3.235s"`. */
const secondsOf = (text = "0s"): number => Number.parseFloat(text);

export type FileProblem =
  | { readonly problem: "tooLong" | "empty" }
  | { readonly problem: "unreadable"; readonly why: Exclude<AudioErrorCode, "EMPTY" | "CHANNEL_OUT_OF_RANGE"> };

export class Voices {
  private constructor(
    readonly engine: Engine,
    readonly voiceprints: Voiceprints,
    readonly people: () => Promise<KnownPerson[]>,
  ) {}

  static async open(model: Uint8Array): Promise<Voices> {
    // One core is left for the page itself.
    const workers = Math.min(4, Math.max(1, navigator.hardwareConcurrency - 1));
    const [engine, store] = await bothOf(
      openEngine({ model, workers, ...calibrationOfPage() }),
      openIndexedDbStore("vivavoce"),
    );
    const voiceprints = await openVoiceprints({ engine, store, scope });
    const { revision } = engine.model;
    const known = async (name: string): Promise<KnownPerson | null> => {
      const profile = await store.profiles.find(scope, "person", name, "");
      if (!profile) return null;
      const { template, createdAt } = profile;
      const isObsolete = template !== null && template.revision !== revision;
      const segments = await store.profiles.segments(scope, profile.id);
      const recordings = segments.filter(({ processed }) => processed.revision === revision).length;
      const usable = isObsolete ? null : template;
      return { name, template: usable, fault: isObsolete ? "obsolete" : null, recordings, createdAt };
    };
    return new Voices(engine, voiceprints, async () => {
      const people: KnownPerson[] = [];
      for (const name of await voiceprints.people()) {
        const person = await known(name).catch((error: unknown): KnownPerson => {
          if (!isDamage(error)) throw error;
          return { name, template: null, fault: "damaged", recordings: 0, createdAt: 0 };
        });
        if (person) people.push(person);
      }
      return people;
    });
  }

  limits(purpose: "enroll" | "verify", targetSeconds: number): Limits {
    const { minSnrDb, minSpeechLevelDb, maxSaturationRatio } = set;
    return { minSnrDb: minSnrDb[purpose], minSpeechLevelDb, maxSaturationRatio, targetSeconds };
  }

  /** The threshold for a check of one complete recording, the same that the decision uses. */
  threshold(score: Score, list: readonly Score[] = [score]): number {
    const impostors = impostorsOnList(
      score,
      [...list].sort((one, other) => other.llr - one.llr),
      list.length,
    );
    const rate = rateOfOneComparison(set.targetFalseAcceptRate.authentication, list.length, 1);
    return this.engine.threshold(rate, { ...score, impostors });
  }

  verify(name: string, audio: Samples) {
    return this.voiceprints.verify(name, audio, { ignoreCheckpoints: true });
  }

  identify(audio: Samples, names: readonly string[]) {
    return this.voiceprints.identify(audio, names, { ignoreCheckpoints: true });
  }

  /** Runs the attack checks; empty if the model has none. */
  async attacks(audio: Samples): Promise<AttackFinding[]> {
    const kinds = this.engine.model.attacks;
    if (kinds.length === 0) return [];
    const wanted = { synthetic: kinds.includes("synthetic"), playback: kinds.includes("playback") };
    const { result } = await this.voiceprints.analyze(audio, { ...wanted, ignoreCheckpoints: true });
    const parts = { synthetic: result.syntheticSpeechResult, playback: result.channelPlaybackResult };
    return kinds.map((kind) => {
      const { decision, strongestStretch: stretch } = parts[kind] ?? {};
      return {
        kind,
        found: decision === "DECISION_FRAUD" ? "attack" : decision === "DECISION_NO_RISK_DETECTED" ? "none" : "unsure",
        strongest: stretch ? { startSeconds: secondsOf(stretch.start), endSeconds: secondsOf(stretch.end) } : null,
      };
    });
  }

  /** Reads a recording and mixes its channels. */
  async read(file: Blob): Promise<Samples | FileProblem> {
    try {
      const recording = readRecording(await toWav(new Uint8Array(await file.arrayBuffer())));
      if (recording.frames === 0) return { problem: "empty" };
      if (recording.frames > longestSeconds * recording.rateHz) return { problem: "tooLong" };
      return { samples: joined([...recording.read(0)]), rateHz: recording.rateHz };
    } catch (error) {
      if (!(error instanceof AudioError) || error.code === "CHANNEL_OUT_OF_RANGE") throw error;
      return error.code === "EMPTY" ? { problem: "empty" } : { problem: "unreadable", why: error.code };
    }
  }
}
