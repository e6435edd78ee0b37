/** One speaker or several, from the windows of a recording: two groups of windows, and how similar their voices are. */
import { cosine } from "./cosine";
import { addToMean, clearMean, finishMean } from "./template";
import { dimensions, kept, matrix, mean, rowOf, smaller, weights } from "./workspace";

const rounds: i32 = 8;

// The two groups' voices; they use the matrix, which is free while speakers are counted.
// @ts-ignore: decorator
@inline
function center(group: i32): usize {
  return matrix + (<usize>(group * dimensions) << 2);
}

function setCenter(group: i32, x: usize): void {
  memory.copy(center(group), x, <usize>dimensions << 2);
}

/** Speech of the smaller group after the last call of `splitVoices`, in seconds. */
export function splitSmallerSpeech(): f64 {
  return load<f64>(smaller);
}

/**
 * rows[n] with weights, in time order, n >= 2: splits them around the window with most speech and the one least similar to it,
 * and returns the cosine between the two groups' means: high for one voice, low for two.
 */
export function splitVoices(n: i32): f32 {
  let first = 0;
  for (let i = 1; i < n; i++) {
    if (load<f32>(weights + (<usize>i << 2)) > load<f32>(weights + (<usize>first << 2))) first = i;
  }
  let second = first == 0 ? 1 : 0;
  for (let i = 0; i < n; i++) {
    if (i == first) continue;
    if (cosine(rowOf(first), rowOf(i), dimensions) < cosine(rowOf(first), rowOf(second), dimensions)) second = i;
  }
  setCenter(0, rowOf(first));
  setCenter(1, rowOf(second));
  for (let round = 0; round < rounds; round++) {
    let moved = false;
    for (let i = 0; i < n; i++) {
      const group = cosine(rowOf(i), center(1), dimensions) > cosine(rowOf(i), center(0), dimensions) ? 1 : 0;
      if (round == 0 || load<i32>(kept + (<usize>i << 2)) != group) moved = true;
      store<i32>(kept + (<usize>i << 2), group);
    }
    if (!moved) break;
    for (let group = 0; group < 2; group++) {
      clearMean();
      for (let i = 0; i < n; i++) if (load<i32>(kept + (<usize>i << 2)) == group) addToMean(i);
      if (finishMean()) setCenter(group, mean);
    }
  }
  let zero: f64 = 0;
  let one: f64 = 0;
  for (let i = 0; i < n; i++) {
    const speech = <f64>load<f32>(weights + (<usize>i << 2));
    if (load<i32>(kept + (<usize>i << 2)) == 0) zero += speech;
    else one += speech;
  }
  store<f64>(smaller, min<f64>(zero, one));
  return cosine(center(0), center(1), dimensions);
}
