/**
 * The attack networks as the host sees them; `kind` is SYNTHETIC or PLAYBACK. Loading, once, before the memory is sealed:
 *
 *   attackReserve(maxFrames, channels)                places for the networks' weights and their scratch; channels of the residual network's first stage: 24 or 32
 *   for i in 0 .. attackTensors(kind)                 for each kind that the model carries, in the order of its section's tensors
 *     copy attackTensorBytes(kind, i) bytes to attackStaging(), attackTake(kind, i)
 *
 * then, any number of times:
 *
 *   copy the frames' f32 values to attackFeatures(), attackScore(kind, frames), attackWipe()
 *
 * A frame has the 288 values of dsp/detail.ts for synthetic speech, the 80 of dsp/log-mel.ts for playback.
 * `attackScore` is NaN where it cannot answer: network not loaded, too few or too many frames, a value that is not finite.
 */
import { Loading, complete, createLoading, take, tensorBytes } from "../nn/loading";
import { finite } from "../nn/finite";
import { ATTACKS, wipe } from "../memory";
import { KINDS, MIN_FRAMES, frameValues, slimShape } from "./config";
import { State, Weights, createState, createWeights, score } from "./network";

const MOST_TENSORS = 160;
const weights = memory.data(KINDS * sizeof<usize>());
const loadings = memory.data(KINDS * sizeof<usize>());
let state: usize = 0;

// @ts-ignore: decorator
@inline
function loadingOf(kind: i32): Loading {
  return changetype<Loading>(load<usize>(loadings + <usize>kind * sizeof<usize>()));
}

// @ts-ignore: decorator
@inline
function known(kind: i32): bool {
  return state != 0 && <u32>kind < <u32>KINDS;
}

export function attackReserve(maxFrames: i32, channels: i32): i32 {
  const shape = slimShape(channels);
  if (maxFrames < MIN_FRAMES || !shape || state) return 0;
  let largest = 0;
  for (let kind = 0; kind < KINDS; kind++) {
    const loading = createLoading(MOST_TENSORS);
    store<usize>(loadings + <usize>kind * sizeof<usize>(), changetype<usize>(loading));
    store<usize>(weights + <usize>kind * sizeof<usize>(), changetype<usize>(createWeights(loading, kind, shape)));
    largest = max(largest, loading.largest);
  }
  state = changetype<usize>(createState(maxFrames, shape, largest));
  return 1;
}

export function attackTensors(kind: i32): i32 {
  return known(kind) ? loadingOf(kind).tensors : 0;
}

export function attackTensorBytes(kind: i32, i: i32): i32 {
  return known(kind) ? tensorBytes(loadingOf(kind), i) : 0;
}

export function attackStaging(): usize {
  return changetype<State>(state).scratch.wide;
}

export function attackTake(kind: i32, i: i32): i32 {
  return known(kind) ? take(loadingOf(kind), i, changetype<State>(state).scratch.wide) : 0;
}

export function attackMinFrames(): i32 {
  return MIN_FRAMES;
}

export function attackMaxFrames(): i32 {
  return state ? changetype<State>(state).maxFrames : 0;
}

export function attackFeatures(): usize {
  return changetype<State>(state).features;
}

export function attackScore(kind: i32, frames: i32): f32 {
  if (!known(kind) || !complete(loadingOf(kind))) return NaN;
  const s = changetype<State>(state);
  if (frames < MIN_FRAMES || frames > s.maxFrames || !finite(s.features, frames * frameValues(kind))) return NaN;
  return score(changetype<Weights>(load<usize>(weights + <usize>kind * sizeof<usize>())), s, frames);
}

export function attackWipe(): void {
  wipe(ATTACKS);
}
