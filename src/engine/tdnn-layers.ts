/**
 * Time-delay networks whose layers are in the model file (`tdnn-1`): ECAPA-TDNN, TitaNet and similar, of any width. A line is a sequence of
 * frames with a number of channels; line 0 holds the features. Each layer reads channels of one or two lines and writes channels of another.
 * The description is checked here, once: the kernels (assembly/speaker/tdnn) trust the program made from it.
 */
import { ModelFileError } from "./model-file-error.js";
import { convolution, dense, depthwise, type TensorSpec, vector } from "./tensor-spec.js";

/** Channels of a line, from `channel` on. */
export interface Place {
  readonly line: number;
  readonly channel: number;
}

interface Named {
  readonly name: string;
  readonly inputs: number;
}

interface Reading extends Named {
  readonly from: Place;
}

interface Convolved extends Reading {
  readonly to: Place;
  readonly taps: number;
  readonly dilation: number;
  /** Padding before the first frame and after the last: zeros, or the frames mirrored. */
  readonly mirrored: boolean;
}

interface Sum extends Reading {
  readonly second: Place | null;
  readonly to: Place;
}

export type TdnnLayer =
  | (Convolved & { readonly kind: "convolution"; readonly outputs: number; readonly words: boolean })
  /** Per channel. */
  | (Convolved & { readonly kind: "depthwise" })
  /** Without a second input it copies. */
  | (Sum & { readonly kind: "add" })
  /** Squeeze and excitation; then adds `second` and applies ReLU to the sum, if the layer says so. */
  | (Sum & { readonly kind: "gate"; readonly hidden: number; readonly rectified: boolean })
  /** Attentive statistics; with `context`, the mean and deviation over all frames are inputs too. */
  | (Reading & { readonly kind: "attention"; readonly hidden: number; readonly context: boolean })
  /** Maps the statistics to the embedding. */
  | (Named & { readonly kind: "map" });

export interface TdnnNetwork {
  /** Channels of each line. */
  readonly lines: readonly number[];
  readonly layers: readonly TdnnLayer[];
  /** Whether every bin of the features is divided by its standard deviation over the window. */
  readonly standardized: boolean;
}

/** assembly/speaker/tdnn/program.ts */
const mostLines = 16;
const mostLayers = 256;
const mostChannels = 16384;
const mostTaps = 64;
/** Below the shortest window, so that frames can be mirrored. */
const mostBorder = 48;
const bins = 80;
const dimensions = 256;

const kinds = ["convolution", "depthwise", "add", "gate", "attention", "map"] as const;
const flags = { mirrored: 1, words: 2, rectified: 4, context: 8, second: 16 } as const;

/**
 * Tensors in the order that the kernels expect; assembly/speaker/tdnn/weights.ts walks the same layers. Gates and attention decide for
 * a whole window, so their weights are 16-bit words; there are few of them.
 */
export function tdnnTensors({ layers }: TdnnNetwork): TensorSpec[] {
  return layers.flatMap(tensorsOf);
}

function tensorsOf(layer: TdnnLayer): TensorSpec[] {
  const { name, inputs } = layer;
  switch (layer.kind) {
    case "convolution":
      return bounded(name, layer.words ? "i16" : "i8", layer.outputs, layer.taps, inputs);
    case "depthwise":
      return depthwise(name, "i16", layer.taps, inputs);
    case "add":
      return sum(name, inputs, layer.second);
    case "gate":
      return [
        ...dense(`${name}.squeeze`, "i16", layer.hidden, inputs),
        ...dense(`${name}.excite`, "i16", inputs, layer.hidden),
        ...sum(name, inputs, layer.second),
      ];
    case "attention":
      return [
        ...(layer.context ? dense(`${name}.context`, "i16", layer.hidden, 2 * inputs) : []),
        ...bounded(`${name}.hidden`, "i16", layer.hidden, 1, inputs),
        vector(`${name}.hidden.step`, layer.hidden),
        ...convolution(`${name}.score`, "i8", inputs, 1, layer.hidden),
        vector(`${name}.score.step`, inputs),
      ];
    case "map":
      return dense(name, "i16", dimensions, inputs);
  }
}

const bounded = (name: string, dtype: "i8" | "i16", outputs: number, taps: number, inputs: number): TensorSpec[] => [
  ...convolution(name, dtype, outputs, taps, inputs),
  vector(`${name}.low`, outputs),
  vector(`${name}.high`, outputs),
];

const sum = (name: string, channels: number, second: Place | null): TensorSpec[] =>
  [`${name}.first`, ...(second ? [`${name}.second`] : [])].map((one) => vector(one, channels));

const borderOf = (layer: TdnnLayer): number =>
  layer.kind === "convolution" || layer.kind === "depthwise" ? (layer.dilation * (layer.taps - 1)) / 2 : 0;

/** The program for the kernels: 12 words per layer. */
export function tdnnProgram({ lines, layers, standardized }: TdnnNetwork): Int32Array {
  const border = Math.max(...layers.map(borderOf));
  const nowhere: Place = { line: 0, channel: 0 };
  const steps = layers.flatMap((layer) => {
    const second = "second" in layer ? layer.second : null;
    const isSet = (flag: keyof typeof flags) =>
      flag === "second" ? second !== null : flag in layer && layer[flag as never] === true;
    const raised = Object.entries(flags).reduce(
      (sum, [flag, bit]) => sum + (isSet(flag as keyof typeof flags) ? bit : 0),
      0,
    );
    const places = ["from" in layer ? layer.from : nowhere, second ?? nowhere, "to" in layer ? layer.to : nowhere];
    const outputs = "outputs" in layer ? layer.outputs : "hidden" in layer ? layer.hidden : layer.inputs;
    const [taps, dilation] = "taps" in layer ? [layer.taps, layer.dilation] : [1, 1];
    return [
      kinds.indexOf(layer.kind),
      raised,
      ...places.flatMap(({ line, channel }) => [line, channel]),
      layer.inputs,
      outputs,
      taps,
      dilation,
    ];
  });
  return Int32Array.from([lines.length, layers.length, border, standardized ? 1 : 0, ...lines, ...steps]);
}

/** Checks the description in a model file: refuses what the kernels cannot run. */
export function tdnnNetworkOf({ lines, layers, standardized }: Readonly<Record<string, unknown>>): TdnnNetwork {
  const channels = list(lines, "lines", mostLines).map((one) => multipleOfEight(one, "a line"));
  if (channels[0] !== bins)
    throw refused(`line 0 must have ${bins} channels, the bins of the features, got ${channels[0]}`);
  const described = list(layers, "layers", mostLayers).map((one, i) => layerOf(one, i, channels));
  const [last, before] = [described.at(-1), described.at(-2)];
  if (last?.kind !== "map" || before?.kind !== "attention" || last.inputs !== 2 * before.inputs)
    throw refused("it must end with attention and the map of its statistics");
  if (described.filter(({ kind }) => kind === "map" || kind === "attention").length > 2)
    throw refused("attention and map are allowed only at its end");
  return { lines: channels, layers: described, standardized: standardized === true };
}

function layerOf(value: unknown, i: number, lines: readonly number[]): TdnnLayer {
  if (typeof value !== "object" || value === null) throw refused(`layer ${i} is not an object`);
  const layer = value as Record<string, unknown>;
  const { kind, name } = layer;
  if (typeof name !== "string") throw refused(`layer ${i} has no name`);
  const inputs = multipleOfEight(layer.inputs, `inputs of ${name}`);
  const yes = (field: string) => layer[field] === true;
  const place = (field: string, channels: number): Place => {
    const { line, channel } = (layer[field] ?? {}) as Record<string, unknown>;
    const at = wholeNumber(line, 0, lines.length - 1, `${field} of ${name}: its line`);
    const width = lines[at]!;
    const first = wholeNumber(channel, 0, width - channels, `${field} of ${name}: its channel`);
    if (first % 8 !== 0) throw refused(`${field} of ${name} must begin at a multiple of 8 channels, got ${first}`);
    return { line: at, channel: first };
  };
  const hidden = () => multipleOfEight(layer.hidden, `hidden of ${name}`);
  switch (kind) {
    case "convolution":
    case "depthwise": {
      const taps = wholeNumber(layer.taps, 1, mostTaps, `taps of ${name}`);
      const dilation = wholeNumber(layer.dilation, 1, mostTaps, `dilation of ${name}`);
      const around = (dilation * (taps - 1)) / 2;
      if (!Number.isInteger(around) || around > mostBorder)
        throw refused(`${name} reads ${around} frames on each side; at most ${mostBorder} are supported`);
      const outputs = kind === "depthwise" ? inputs : multipleOfEight(layer.outputs, `outputs of ${name}`);
      const read = { name, inputs, taps, dilation, mirrored: yes("mirrored") };
      const [from, to] = [place("from", inputs), place("to", outputs)];
      if (overlap(from, inputs, to, outputs)) throw refused(`${name} overwrites its own input`);
      return kind === "depthwise"
        ? { kind, ...read, from, to }
        : { kind, ...read, from, to, outputs, words: yes("words") };
    }
    case "add":
    case "gate": {
      const second = layer.second === null ? null : place("second", inputs);
      const sum = { name, inputs, from: place("from", inputs), second, to: place("to", inputs) };
      // Channel by channel, so in place is fine.
      for (const read of [sum.from, second])
        if (read && read.channel !== sum.to.channel && overlap(read, inputs, sum.to, inputs))
          throw refused(`${name} overwrites its own input`);
      return kind === "add" ? { kind, ...sum } : { kind, ...sum, hidden: hidden(), rectified: yes("rectified") };
    }
    case "attention":
      return { kind, name, inputs, from: place("from", inputs), hidden: hidden(), context: yes("context") };
    case "map":
      return { kind, name, inputs };
    default:
      throw refused(`layer ${i} must be one of ${kinds.join(", ")}, got ${String(kind)}`);
  }
}

const overlap = (one: Place, ofOne: number, other: Place, ofOther: number): boolean =>
  one.line === other.line && one.channel < other.channel + ofOther && other.channel < one.channel + ofOne;

function list(value: unknown, what: string, most: number): readonly unknown[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > most)
    throw refused(`its ${what} must be a list of 1 to ${most}`);
  return value;
}

function wholeNumber(value: unknown, least: number, most: number, what: string): number {
  if (!Number.isInteger(value) || (value as number) < least || (value as number) > most)
    throw refused(`${what} must be a whole number from ${least} to ${most}, got ${String(value)}`);
  return value as number;
}

function multipleOfEight(value: unknown, what: string): number {
  const count = wholeNumber(value, 8, mostChannels, `${what}: channels`);
  if (count % 8 !== 0) throw refused(`${what} must have a multiple of 8 channels, got ${count}`);
  return count;
}

function refused(detail: string): ModelFileError {
  return new ModelFileError("MALFORMED", `the model file is malformed: its network cannot be run: ${detail}`);
}
