/**
 * The speaker network as the host sees it. Loading, once, before the memory is sealed:
 *
 *   copy the program to speakerProgram()              only TDNN, whose layers are described (tdnn/program.ts)
 *   speakerReserve(architecture, maxFrames, floor)    places for weights and scratch; 0 when one of them is out of range
 *   for i in 0 .. speakerTensors()                    in the order of the model file's network tensors
 *     copy speakerTensorBytes(i) bytes to speakerStaging()
 *     speakerTake(i)
 *   speakerReady()                                    1 once every tensor has been taken
 *
 * then, any number of times:
 *
 *   copy frames × speakerBins() f32 log-mel values to speakerFeatures(), mean not removed
 *   speakerEmbed(frames)                              0, or the reason for a failure (below)
 *   read speakerDimensions() f32 from speakerEmbedding(), unit length
 *   speakerWipe()                                     features, scratch and embedding become zeros
 *
 * `speakerStaging` is in the scratch: a tensor is copied and taken before the next, and none after the first `speakerEmbed`.
 */
import { finite } from "../nn/finite";
import { Loading, complete, createLoading, take, tensorBytes } from "../nn/loading";
import { SPEAKER, wipe } from "../memory";
import { BINS, DIMENSIONS, MIN_FRAMES, MOST_FRAMES } from "./config";
import { forward as forwardCampplus } from "./campplus/network";
import { State as CampplusState, createState as createCampplusState } from "./campplus/state";
import { Weights as CampplusWeights, createWeights as createCampplusWeights } from "./campplus/weights";
import { forward as forwardResnet } from "./resnet/network";
import { State as ResnetState, createState as createResnetState } from "./resnet/state";
import { Weights as ResnetWeights, createWeights as createResnetWeights } from "./resnet/weights";
import { State } from "./state";
import { forward as forwardTdnn } from "./tdnn/network";
import { isProgram, program, programCapacity } from "./tdnn/program";
import { State as TdnnState, createState as createTdnnState } from "./tdnn/state";
import { Weights as TdnnWeights, createWeights as createTdnnWeights } from "./tdnn/weights";

/** Architectures. */
export const CAMPPLUS: i32 = 0;
export const RESNET34: i32 = 1;
export const TDNN: i32 = 2;

/** Results of `speakerEmbed`. */
export const EMBEDDED: i32 = 0;
export const NOT_LOADED: i32 = 1;
export const TOO_FEW_FRAMES: i32 = 2;
export const TOO_MANY_FRAMES: i32 = 3;
export const NOT_FINITE: i32 = 4;

let architecture: i32 = CAMPPLUS;
let weights: usize = 0;
let state: usize = 0;
let loading: usize = 0;

/** More tensors than any supported network has. */
const MOST_TENSORS = 1024;

export function speakerProgram(): usize {
  return program();
}

/** Words of the longest program. */
export function speakerProgramCapacity(): i32 {
  return programCapacity();
}

export function speakerReserve(kind: i32, maxFrames: i32, floor: f32): i32 {
  if (maxFrames < MIN_FRAMES || maxFrames > MOST_FRAMES || weights) return 0;
  // Written so that a NaN floor is rejected too.
  if ((kind != CAMPPLUS && kind != RESNET34 && kind != TDNN) || !(floor >= 0 && floor < 1)) return 0;
  if (kind == TDNN && !isProgram()) return 0;
  const l = createLoading(MOST_TENSORS);
  architecture = kind;
  loading = changetype<usize>(l);
  if (kind == CAMPPLUS) {
    weights = changetype<usize>(createCampplusWeights(l));
    state = changetype<usize>(createCampplusState(maxFrames, floor, l.largest));
  } else if (kind == RESNET34) {
    weights = changetype<usize>(createResnetWeights(l));
    state = changetype<usize>(createResnetState(maxFrames, floor, l.largest));
  } else {
    weights = changetype<usize>(createTdnnWeights(l));
    state = changetype<usize>(createTdnnState(maxFrames, floor, l.largest));
  }
  return 1;
}

export function speakerTensors(): i32 {
  return loading ? changetype<Loading>(loading).tensors : 0;
}

export function speakerTensorBytes(i: i32): i32 {
  return loading ? tensorBytes(changetype<Loading>(loading), i) : 0;
}

export function speakerStaging(): usize {
  return changetype<State>(state).staging;
}

/** Tensors must be taken in order, each once: 1, or 0 for any other i. */
export function speakerTake(i: i32): i32 {
  return loading ? take(changetype<Loading>(loading), i, changetype<State>(state).staging) : 0;
}

export function speakerReady(): i32 {
  return <i32>(weights != 0 && complete(changetype<Loading>(loading)));
}

export function speakerBins(): i32 {
  return BINS;
}

export function speakerMinFrames(): i32 {
  return MIN_FRAMES;
}

export function speakerMaxFrames(): i32 {
  return changetype<State>(state).maxFrames;
}

export function speakerFeatures(): usize {
  return changetype<State>(state).features;
}

export function speakerDimensions(): i32 {
  return DIMENSIONS;
}

export function speakerEmbedding(): usize {
  return changetype<State>(state).embedding;
}

export function speakerEmbed(frames: i32): i32 {
  if (!speakerReady()) return NOT_LOADED;
  const s = changetype<State>(state);
  if (frames < MIN_FRAMES) return TOO_FEW_FRAMES;
  if (frames > s.maxFrames) return TOO_MANY_FRAMES;
  if (!finite(s.features, frames * BINS)) return NOT_FINITE;
  if (architecture == CAMPPLUS) forwardCampplus(changetype<CampplusWeights>(weights), changetype<CampplusState>(state), frames);
  else if (architecture == RESNET34) forwardResnet(changetype<ResnetWeights>(weights), changetype<ResnetState>(state), frames);
  else forwardTdnn(changetype<TdnnWeights>(weights), changetype<TdnnState>(state), frames);
  return EMBEDDED;
}

export function speakerWipe(): void {
  wipe(SPEAKER);
}
