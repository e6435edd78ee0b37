/**
 * Time-delay networks whose layers are in the model file: ECAPA-TDNN, TitaNet and similar, of any width. The host checks the program
 * (src/engine/tdnn-layers.ts) and writes it before the network is reserved:
 *
 *   i32 lines, steps, border, standardized;  i32[lines] channels of each line;  then the steps, 12 words each
 *
 * A line is a sequence of frames [border + frames + border][channels] of activations; line 0 holds the features. A step reads channels of one
 * or two lines and writes channels of another.
 */

const MOST_LINES = 16;
const MOST_STEPS = 256;

/** Bounded convolution from line to line. */
export const CONVOLUTION: i32 = 0;
/** The same per channel, not bounded. */
export const DEPTHWISE: i32 = 1;
/** Sum of two lines, or a copy of one with other steps. */
export const ADD: i32 = 2;
/** Squeeze and excitation: scales a line by a gate computed from its mean, and adds a second line if there is one. */
export const GATE: i32 = 3;
/** Attentive statistics of a line. */
export const ATTENTION: i32 = 4;
/** The linear map at the end. */
export const MAP: i32 = 5;

/** Flags of a step. */
export const MIRRORED: i32 = 1;
export const WORDS: i32 = 2;
export const RECTIFIED: i32 = 4;
export const CONTEXT: i32 = 8;
export const SECOND: i32 = 16;

@unmanaged
export class Step {
  kind: i32;
  flags: i32;
  from: i32;
  fromChannel: i32;
  second: i32;
  secondChannel: i32;
  to: i32;
  toChannel: i32;
  inputs: i32;
  /** For a gate and for attention: the hidden channels. */
  outputs: i32;
  taps: i32;
  dilation: i32;
}

@unmanaged
class Head {
  lines: i32;
  steps: i32;
  border: i32;
  standardized: i32;
}

const WORDS_MOST = 4 + MOST_LINES + MOST_STEPS * 12;
const PROGRAM: usize = memory.data(WORDS_MOST * 4, 16);

/** Where the host writes the program, and its capacity in i32. */
export function program(): usize {
  return PROGRAM;
}
export function programCapacity(): i32 {
  return WORDS_MOST;
}

export function lineCount(): i32 {
  return changetype<Head>(PROGRAM).lines;
}
export function stepCount(): i32 {
  return changetype<Head>(PROGRAM).steps;
}
/** Frames around each line. */
export function border(): i32 {
  return changetype<Head>(PROGRAM).border;
}
/** Every bin of the features is divided by its deviation. */
export function isStandardized(): bool {
  return changetype<Head>(PROGRAM).standardized != 0;
}
export function lineChannels(line: i32): i32 {
  return load<i32>(PROGRAM + offsetof<Head>() + (<usize>line << 2));
}
/** Bytes of a frame of a line. */
export function rowBytes(line: i32): usize {
  return <usize>lineChannels(line) << 1;
}
export function stepAt(i: i32): Step {
  return changetype<Step>(PROGRAM + offsetof<Head>() + (<usize>lineCount() << 2) + <usize>i * offsetof<Step>());
}

/** The program exists and fits. */
export function isProgram(): bool {
  return lineCount() > 0 && lineCount() <= MOST_LINES && stepCount() > 0 && stepCount() <= MOST_STEPS;
}
