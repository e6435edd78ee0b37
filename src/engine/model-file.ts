/**
 * The model file.
 *
 *   0   "vivavoce"
 *   8   u32 version (all numbers are little-endian)
 *   12  u32 bytes of the header
 *   16  header: JSON { family, licence, trainingData, bytes, sections: [{ name, offset, bytes, sha256 }] }, padded with spaces
 *   …   sections, 16-byte aligned
 *   -32 SHA-256 of everything before it
 *
 * A section is self-contained, and its SHA-256 is its revision:
 *
 *   0   u32 bytes of the description, three zero words
 *   16  description: JSON { …, tensors: [{ name, dtype, shape, offset, bytes }] }, padded with spaces
 *   …   tensors, 16-byte aligned; offsets count from the start of the section
 *
 * Section `network` holds the speaker network and its front end. Its revision is the model's; templates of another revision are
 * obsolete. All other sections (`voice-class`, `calibration`, attack networks) may change without making a template obsolete.
 *
 * To load the network into the kernels: for each of `network.tensors`, in order, copy `bytes` to the staging slot and take it
 * (assembly/speaker/abi.ts). The table was checked against the architecture, so every size matches.
 */
import { type FrontEnd, frontEndOf } from "./front-end.js";
import { ModelFileError } from "./model-file-error.js";
import {
  isSpeakerArchitecture,
  SPEAKER_ARCHITECTURES,
  type SpeakerArchitecture,
  speakerTensors,
} from "./speaker-tensors.js";
import { tdnnNetworkOf, tdnnProgram, tdnnTensors } from "./tdnn-layers.js";
import type { Dtype, TensorSpec } from "./tensor-spec.js";

export interface Tensor extends TensorSpec {
  /** A view of the file, 16-byte aligned within it. */
  readonly bytes: Uint8Array;
}

export interface ModelSection {
  readonly name: string;
  /** SHA-256 (hex) of the section. */
  readonly revision: string;
  readonly description: Readonly<Record<string, unknown>>;
  readonly tensors: readonly Tensor[];
  /** The whole section, as it is in the file. */
  readonly bytes: Uint8Array;
}

/** A direction in the embedding space, and the values of the training speakers along it: ascending, at equal quantiles. */
export interface VoiceClassAxis {
  readonly axis: Float32Array;
  readonly quantiles: Float32Array;
}

export interface ModelFile {
  readonly family: string;
  readonly licence: string;
  readonly trainingData: readonly string[];
  /** SHA-256 (hex) of section `network`. */
  readonly revision: string;
  readonly network: ModelSection;
  readonly architecture: SpeakerArchitecture;
  readonly frontEnd: FrontEnd;
  /** Only for an architecture whose layers are in the model file; otherwise empty. */
  readonly program: Int32Array;
  readonly sections: ReadonlyMap<string, ModelSection>;
  readonly voiceClass: VoiceClassAxis | null;
  /** As `training/` wrote it; `null` if the model has none. */
  readonly calibration: Readonly<Record<string, unknown>> | null;
  /** SHA-256 (hex) of that section; empty if the model has none. */
  readonly calibrationRevision: string;
}

export const MODEL_FILE_VERSION = 1;
const MAGIC = "vivavoce";
const DIGEST_BYTES = 32;
const ELEMENT_BYTES: Record<Dtype, number> = { i8: 1, i16: 2, f32: 4 };

/** Parses and checks a model file. The tensors are views of the given bytes, which must not change afterwards. */
export async function readModelFile(given: Uint8Array): Promise<ModelFile> {
  // `slice` of a Node Buffer does not copy, unlike that of a Uint8Array.
  const bytes = new Uint8Array(given.buffer, given.byteOffset, given.byteLength);
  const header = readHeader(bytes);
  const body = bytes.subarray(0, bytes.length - DIGEST_BYTES);
  if ((await sha256(body)) !== hex(bytes.subarray(bytes.length - DIGEST_BYTES)))
    throw new ModelFileError("ALTERED", "the model file was altered: its SHA-256 does not match");
  const sections = new Map<string, ModelSection>();
  for (const entry of header.sections) sections.set(entry.name, await readSection(body, entry));
  const network = sections.get("network");
  if (!network) throw malformed("it has no section `network`");
  const architecture = architectureOf(network);
  const described = architecture === "tdnn-1" ? tdnnNetworkOf(network.description) : null;
  checkTensors(network, architecture === "tdnn-1" ? tdnnTensors(described!) : speakerTensors(architecture));
  return {
    family: header.family,
    licence: header.licence,
    trainingData: header.trainingData,
    revision: network.revision,
    network,
    architecture,
    frontEnd: frontEndOf(record(network.description.frontEnd, "the front end")),
    program: described ? tdnnProgram(described) : new Int32Array(),
    sections,
    voiceClass: readVoiceClass(sections.get("voice-class")),
    calibration: sections.get("calibration")?.description ?? null,
    calibrationRevision: sections.get("calibration")?.revision ?? "",
  };
}

/** What a model file says about itself. Its digests are checked when it is opened. */
export function describedModel(bytes: Uint8Array): { readonly family: string; readonly revision: string } {
  const { family, sections } = readHeader(bytes);
  const network = sections.find(({ name }) => name === "network");
  if (!network) throw malformed("it has no section `network`");
  return { family, revision: network.sha256 };
}

/** A copy of the tensor's values. */
export function tensorValues(tensor: Tensor): Int8Array | Int16Array | Float32Array {
  const copy = tensor.bytes.slice().buffer;
  if (tensor.dtype === "i8") return new Int8Array(copy);
  if (tensor.dtype === "i16") return new Int16Array(copy);
  return new Float32Array(copy);
}

interface SectionEntry {
  readonly name: string;
  readonly offset: number;
  readonly bytes: number;
  readonly sha256: string;
}

interface Header {
  readonly family: string;
  readonly licence: string;
  readonly trainingData: string[];
  readonly sections: SectionEntry[];
}

function readHeader(bytes: Uint8Array): Header {
  if (bytes.length < MAGIC.length || text(bytes.subarray(0, MAGIC.length)) !== MAGIC)
    throw new ModelFileError("NOT_A_MODEL", "this is not a vivavoce model file");
  if (bytes.length < 16) throw truncated("it ends within its first 16 bytes");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const version = view.getUint32(8, true);
  if (version !== MODEL_FILE_VERSION)
    throw new ModelFileError(
      "OTHER_VERSION",
      `the model file has version ${version}; this engine reads version ${MODEL_FILE_VERSION}`,
    );
  const headerBytes = view.getUint32(12, true);
  if (16 + headerBytes + DIGEST_BYTES > bytes.length) throw truncated("it ends within its header");
  const header = readJson(bytes.subarray(16, 16 + headerBytes), "its header");
  const { family, licence, trainingData, bytes: total, sections } = header;
  if (typeof family !== "string" || typeof licence !== "string") throw malformed("family or licence is missing");
  if (!Array.isArray(trainingData) || !trainingData.every((name) => typeof name === "string"))
    throw malformed("trainingData is missing");
  if (!isCount(total) || !Array.isArray(sections)) throw malformed("its length or its sections are missing");
  if (bytes.length < total) throw truncated(`it has ${bytes.length} of ${total} bytes`);
  if (bytes.length > total)
    throw new ModelFileError("ALTERED", `the model file is ${bytes.length - total} bytes too long`);
  const names = new Set<string>();
  for (const entry of sections) {
    const { name, offset, bytes: length, sha256: digest } = record(entry, "a section");
    if (typeof name !== "string" || typeof digest !== "string" || !isCount(offset) || !isCount(length))
      throw malformed("a section lacks name, offset, bytes or sha256");
    if (names.has(name)) throw malformed(`section ${name} occurs twice`);
    if (offset % 16 !== 0 || offset < 16 + headerBytes || length < 16 || offset + length > total - DIGEST_BYTES)
      throw malformed(`section ${name} is outside the file`);
    names.add(name);
  }
  return { family, licence, trainingData, sections };
}

async function readSection(file: Uint8Array, entry: SectionEntry): Promise<ModelSection> {
  const bytes = file.subarray(entry.offset, entry.offset + entry.bytes);
  const revision = await sha256(bytes);
  if (revision !== entry.sha256)
    throw new ModelFileError("ALTERED", `section ${entry.name} was altered: its SHA-256 does not match`);
  const descriptionBytes = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
  if (16 + descriptionBytes > bytes.length) throw malformed(`the description of section ${entry.name} is too long`);
  const description = readJson(bytes.subarray(16, 16 + descriptionBytes), `section ${entry.name}`);
  const table = description.tensors ?? [];
  if (!Array.isArray(table)) throw malformed(`the tensors of section ${entry.name} are not a list`);
  const tensors = table.map((row) => readTensor(bytes, 16 + descriptionBytes, entry.name, row));
  return { name: entry.name, revision, description, tensors, bytes };
}

function readTensor(section: Uint8Array, from: number, sectionName: string, row: unknown): Tensor {
  const { name, dtype, shape, offset, bytes } = record(row, `a tensor of section ${sectionName}`);
  if (typeof name !== "string" || !isDtype(dtype) || !Array.isArray(shape) || !shape.every(isCount))
    throw malformed(`a tensor of section ${sectionName} lacks name, dtype or shape`);
  if (!isCount(offset) || !isCount(bytes) || offset % 16 !== 0 || offset < from || offset + bytes > section.length)
    throw malformed(`tensor ${name} is outside its section`);
  if (bytes !== shape.reduce((product, size) => product * size, ELEMENT_BYTES[dtype]))
    throw malformed(`tensor ${name} has ${bytes} bytes, which does not match its shape`);
  return { name, dtype, shape, bytes: section.subarray(offset, offset + bytes) };
}

function architectureOf({ description }: ModelSection): SpeakerArchitecture {
  const { architecture } = description;
  if (isSpeakerArchitecture(architecture)) return architecture;
  const known = SPEAKER_ARCHITECTURES.join(", ");
  throw new ModelFileError(
    "OTHER_ARCHITECTURE",
    `the model's network is ${String(architecture)}, this engine runs ${known}`,
  );
}

function checkTensors(network: ModelSection, wanted: readonly TensorSpec[]): void {
  if (network.tensors.length !== wanted.length)
    throw malformed(`the network must have ${wanted.length} tensors, got ${network.tensors.length}`);
  for (const [i, spec] of wanted.entries()) {
    const { name, dtype, shape } = network.tensors[i]!;
    if (name !== spec.name || dtype !== spec.dtype || shape.join() !== spec.shape.join())
      throw malformed(`tensor ${i} is ${name} ${dtype}[${shape}], not ${spec.name} ${spec.dtype}[${spec.shape}]`);
  }
}

function readVoiceClass(section: ModelSection | undefined): VoiceClassAxis | null {
  return section ? { axis: vectorOf(section, "axis"), quantiles: vectorOf(section, "quantiles") } : null;
}

function vectorOf(section: ModelSection, name: string): Float32Array {
  const tensor = section.tensors.find((candidate) => candidate.name === name);
  if (tensor?.dtype !== "f32" || tensor.shape.length !== 1)
    throw malformed(`section ${section.name} has no vector ${name} of the type f32`);
  return tensorValues(tensor) as Float32Array;
}

function readJson(bytes: Uint8Array, what: string): Record<string, unknown> {
  try {
    return record(JSON.parse(text(bytes)), what);
  } catch (error) {
    if (error instanceof ModelFileError) throw error;
    throw malformed(`${what} is not JSON`);
  }
}

function record(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw malformed(`${what} is not an object`);
  return value as Record<string, unknown>;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isDtype(value: unknown): value is Dtype {
  return typeof value === "string" && Object.hasOwn(ELEMENT_BYTES, value);
}

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

export async function sha256(bytes: Uint8Array): Promise<string> {
  const subtle = globalThis.crypto?.subtle;
  if (!subtle)
    throw new ModelFileError("NO_DIGEST", "this page has no WebCrypto: serve it over https or from localhost");
  return hex(new Uint8Array(await subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>)));
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function truncated(detail: string): ModelFileError {
  return new ModelFileError("TRUNCATED", `the model file is truncated: ${detail}`);
}

function malformed(detail: string): ModelFileError {
  return new ModelFileError("MALFORMED", `the model file is malformed: ${detail}`);
}
