/** Makes a template from segments, for Train and for retraining after a model update. */
import { TrainReason } from "../contract/index.js";
import type { Engine, SegmentConsistency, Template } from "../engine/port.js";
import type { ProcessedAudio } from "../store/port.js";
import type { ConfigurationSet } from "../voiceprint/configuration-set.js";
import { usableSegments } from "../voiceprint/enrollment.js";
import { enoughForTraining, inTrainingOrder, trainReason } from "../voiceprint/template.js";
import { audioModel, voiceOf } from "./audio-model.js";
import { engineOptions, type OperationOptions } from "./dependencies.js";
import { unlessEngineFails } from "./failures.js";

export interface Training {
  readonly reason: TrainReason;
  /** Set when the reason is TRAIN_OK. */
  readonly template: Template | null;
  /** By audio model id, without those that the engine's model cannot use. */
  readonly consistency: ReadonlyMap<string, SegmentConsistency>;
  /** Ids of the audio models that count: usable and, if known, consistent with the others. */
  readonly valid: ReadonlySet<string>;
}

export async function trainTemplate(
  engine: Engine,
  segments: readonly ProcessedAudio[],
  set: ConfigurationSet,
  options: OperationOptions,
): Promise<Training> {
  const models = segments.map((processed) => ({ ...audioModel(processed), measures: processed.measures }));
  const usable = inTrainingOrder(usableSegments(models, engine.model.revision));
  const net = usable.map(({ audio }) => ({ netSpeechSeconds: audio.netSpeechSeconds }));
  const usableIds = new Set(usable.map(({ id }) => id));
  if (!enoughForTraining(net, set))
    return { reason: TrainReason.NOT_READY_TO_TRAIN, template: null, consistency: new Map(), valid: usableIds };
  const voices = usable.map((model) => voiceOf(model, model.embedding!));
  const trained = await unlessEngineFails(() => engine.train(voices, engineOptions(options)), options.signal);
  if (trained === null || trained.segments.length !== usable.length)
    return { reason: TrainReason.INTERNAL_ERROR, template: null, consistency: new Map(), valid: usableIds };
  const consistency = new Map(usable.map((model, i) => [model.id, trained.segments[i]!]));
  const known = usable.map((model) => ({ ...model.audio, consistent: consistency.get(model.id)!.consistent }));
  const judged = trainReason(known, set);
  const reason = judged === TrainReason.TRAIN_OK && trained.template === null ? TrainReason.INCONSISTENCY : judged;
  const { calibrationModelId } = engine.model;
  const template =
    reason === TrainReason.TRAIN_OK && trained.template ? { ...trained.template, calibrationModelId } : null;
  const valid = new Set([...usableIds].filter((id) => consistency.get(id)!.consistent));
  return { reason, template, consistency, valid };
}
