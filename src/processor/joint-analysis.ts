/**
 * Processes audio with several models at once: the scope's own model, and those that older prints need. They stay in
 * step: when the scope's model reaches a checkpoint, the others have processed the same audio.
 */
import type { Engine, StreamOptions, VoiceAnalysis, VoiceStream } from "../engine/port.js";
import type { Id } from "../store/port.js";
import type { Models } from "./models.js";

/** The analysis by the scope's model, with those by the other models. */
export interface JointAnalysis extends VoiceAnalysis {
  readonly others?: readonly VoiceAnalysis[];
}

/** The analysis by the model of this revision. */
export const analysisBy = (analysis: JointAnalysis, revision: string): VoiceAnalysis | undefined =>
  analysis.revision === revision ? analysis : analysis.others?.find((other) => other.revision === revision);

export interface Listener {
  analyze(...call: Parameters<Engine["analyze"]>): Promise<JointAnalysis>;
  stream(rateHz: number, options?: JointStreamOptions): Promise<JointStream>;
}

export interface JointStreamOptions extends Omit<StreamOptions, "checkpoints"> {
  readonly checkpoints?: {
    readonly seconds: readonly number[];
    readonly look: (analysis: JointAnalysis) => Promise<boolean>;
  };
}

export interface JointStream extends VoiceStream {
  analysis(): Promise<JointAnalysis>;
}

/** Listens with the scope's model and with the models of the given revisions. */
export async function listenerOf(models: Models, scopeId: Id, revisions: Iterable<string> = []): Promise<Listener> {
  const engine = models.of(scopeId);
  const others = [...new Set(revisions)].filter((revision) => revision !== engine.model.revision);
  if (others.length === 0) return engine;
  return jointListener(engine, await Promise.all(others.map((revision) => models.open(revision))));
}

const jointListener = (engine: Engine, others: readonly Engine[]): Listener => ({
  async analyze(samples, rateHz, options) {
    // `analyze` takes over the array, so each model gets a copy.
    const analyzed = others.map((other) => other.analyze(samples.slice(), rateHz, options));
    const [own, ...rest] = await Promise.all([engine.analyze(samples, rateHz, options), ...analyzed]);
    return { ...own!, others: rest };
  },
  async stream(rateHz, { checkpoints, ...options } = {}) {
    const followers: Follower[] = [];
    try {
      for (const other of others) followers.push(await follower(other, rateHz, options, checkpoints?.seconds));
      const joint = new Joint(followers);
      joint.stream = await engine.stream(rateHz, {
        ...options,
        ...(checkpoints && {
          checkpoints: {
            seconds: checkpoints.seconds,
            look: async (analysis) => {
              const others = await joint.atLook();
              const ends = await checkpoints.look({ ...analysis, others });
              if (ends) joint.endedWith = others;
              return ends;
            },
          },
        }),
      });
      return joint;
    } catch (error) {
      await Promise.all(followers.map((follower) => follower.stream.close()));
      throw error;
    }
  },
});

/** One of the other models. */
interface Follower {
  readonly stream: VoiceStream;
  /** The analysis at the next checkpoint. All models measure speech the same way, so this model has reached it too. */
  atLook(): Promise<VoiceAnalysis>;
}

/** It records its analysis at each checkpoint, in order. */
async function follower(
  engine: Engine,
  rateHz: number,
  options: Omit<StreamOptions, "checkpoints">,
  seconds: readonly number[] = [],
): Promise<Follower> {
  const looks: VoiceAnalysis[] = [];
  const look = async (analysis: VoiceAnalysis) => {
    looks.push(analysis);
    return false;
  };
  const stream = await engine.stream(rateHz, { ...options, checkpoints: { seconds, look } });
  return { stream, atLook: async () => looks.shift() ?? stream.analysis() };
}

class Joint implements JointStream {
  stream!: VoiceStream;
  /** The analyses by the other models at the look that ended the stream. */
  endedWith: readonly VoiceAnalysis[] | null = null;

  constructor(private readonly followers: readonly Follower[]) {}

  get ended(): boolean {
    return this.stream.ended;
  }

  /** Pushes to the other models first, because looks of the scope's model ask for their analyses. */
  async push(samples: Float32Array): Promise<number> {
    if (!this.ended) await Promise.all(this.followers.map(({ stream }) => stream.push(samples.slice())));
    return this.stream.push(samples);
  }

  measures() {
    return this.stream.measures();
  }

  atLook(): Promise<VoiceAnalysis[]> {
    return Promise.all(this.followers.map((follower) => follower.atLook()));
  }

  async analysis(): Promise<JointAnalysis> {
    const others = this.endedWith ?? (await Promise.all(this.followers.map(({ stream }) => stream.analysis())));
    return { ...(await this.stream.analysis()), others };
  }

  async close(): Promise<void> {
    await Promise.all([this.stream, ...this.followers.map(({ stream }) => stream)].map((stream) => stream.close()));
  }
}
