/**
 * Plain bytes of a record before sealing: a JSON header, then the embeddings as 32-bit floats, in the byte order
 * of all supported machines (little-endian, like WebAssembly memory).
 *
 *   | header bytes, u32 | header, UTF-8 | zeros to a multiple of 4 | floats |
 */
import type { Template, VoiceWindow } from "../engine/port.js";
import type { PlainProcessed, ProcessedAudio } from "./port.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

interface TemplateHeader extends Omit<Template, "embedding" | "grown"> {
  readonly dimensions: number;
  /** Parts of an adapted template, the enrolled part first; their embeddings follow the template's. */
  readonly members?: readonly [object, ...object[]];
}

interface VoiceHeader {
  readonly voiceClass: number | null;
  /** 0 when there is no embedding. */
  readonly dimensions: number;
  readonly windows: readonly (Omit<VoiceWindow, "embedding"> & { readonly dimensions: number })[];
}

export function encodeTemplate({ embedding, grown, ...quality }: Template): Uint8Array {
  const header: TemplateHeader = { ...quality, dimensions: embedding.length };
  if (!grown) return encode(header, [embedding]);
  const { enrolled, sessions } = grown;
  const members = [plain(enrolled), ...sessions.map(plain)];
  return encode({ ...header, members }, [embedding, ...[enrolled, ...sessions].map((voice) => voice.embedding)]);
}

export function decodeTemplate(bytes: Uint8Array): Template {
  const { header, floats } = decode<TemplateHeader>(bytes);
  const { dimensions, members, ...quality } = header;
  const template = { ...quality, embedding: floats(dimensions) };
  if (!members) return template;
  const [enrolled, ...sessions] = members.map((member) => ({ ...member, embedding: floats(dimensions) }));
  return {
    ...template,
    grown: { enrolled: enrolled as Grown["enrolled"], sessions: sessions as unknown as Grown["sessions"] },
  };
}

type Grown = NonNullable<Template["grown"]>;
const plain = ({ embedding: _, ...member }: Grown["enrolled"]): object => member;

/** An audio model as stores keep it: plain fields, and the bytes to seal. */
export function splitProcessed({ voice, voiceClass, ...plain }: ProcessedAudio): {
  plain: PlainProcessed;
  content: Uint8Array;
} {
  const windows = voice.windows.map(({ embedding, ...window }) => ({ ...window, dimensions: embedding.length }));
  const header: VoiceHeader = { voiceClass, dimensions: voice.embedding?.length ?? 0, windows };
  const embeddings = voice.windows.map(({ embedding }) => embedding);
  const content = encode(header, voice.embedding ? [voice.embedding, ...embeddings] : embeddings);
  return { plain, content };
}

export function joinProcessed(plain: PlainProcessed, content: Uint8Array): ProcessedAudio {
  const { header, floats } = decode<VoiceHeader>(content);
  const embedding = header.dimensions > 0 ? floats(header.dimensions) : null;
  const windows = header.windows.map(({ dimensions, ...window }) => ({ ...window, embedding: floats(dimensions) }));
  return { ...plain, voice: { windows, embedding }, voiceClass: header.voiceClass };
}

export function encodeJson(value: unknown): Uint8Array {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`a document must be a JSON value, got ${typeof value}`);
  return encoder.encode(text);
}

export const decodeJson = (bytes: Uint8Array) => JSON.parse(decoder.decode(bytes));

const FLOAT_BYTES = 4;

function encode(header: object, embeddings: readonly Float32Array[]): Uint8Array {
  const text = encoder.encode(JSON.stringify(header));
  const start = floatsStart(text.length);
  const bytes = new Uint8Array(start + embeddings.reduce((sum, { length }) => sum + length, 0) * FLOAT_BYTES);
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(text, FLOAT_BYTES);
  let at = start;
  for (const { buffer, byteOffset, byteLength } of embeddings) {
    bytes.set(new Uint8Array(buffer, byteOffset, byteLength), at);
    at += byteLength;
  }
  return bytes;
}

function decode<Header>(bytes: Uint8Array): { header: Header; floats(count: number): Float32Array } {
  const headerBytes = headerBytesOf(bytes);
  const header: Header = JSON.parse(decoder.decode(bytes.subarray(FLOAT_BYTES, FLOAT_BYTES + headerBytes)));
  let at = floatsStart(headerBytes);
  return {
    header,
    floats(count) {
      const start = at;
      at += count * FLOAT_BYTES;
      return new Float32Array(bytes.slice(start, at).buffer);
    },
  };
}

/** Offset of the embeddings in encoded bytes. */
export function embeddingsStart(bytes: Uint8Array): number {
  return floatsStart(headerBytesOf(bytes));
}

function headerBytesOf(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0, true);
}

function floatsStart(headerBytes: number): number {
  return Math.ceil((FLOAT_BYTES + headerBytes) / FLOAT_BYTES) * FLOAT_BYTES;
}
