/**
 * Turns embeddings by a secret matrix before they are sealed (ISO/IEC 24745): the turned embedding is not a voice, and cannot be compared with
 * other records of the same voice, in this or another scope. Three rounds of secret signs and a Hadamard matrix make an orthogonal
 * matrix that costs n log n. In double precision it is inverted to the bit, so scores do not change. Rounding could change only
 * numbers below 2^-27 of the largest, which do not matter for a voice; those are stored separately.
 *
 *   plain  | header bytes, u32 | header | zeros | f32 … |
 *   turned | salt, 16 bytes | check, 8 bytes | kept, u64 | header bytes, u32 | header | zeros | f64 … | index, u32 and f32, of each kept |
 *
 * The signs are derived from the scope's secret and the salt, which is new at every sealing; the check detects a wrong secret.
 */
import { embeddingsStart } from "../encoding.js";
import { type Aead, randomBytes } from "./aead.js";

const SALT_BYTES = 16;
const CHECK_BYTES = 8;
const PREFIX_BYTES = SALT_BYTES + CHECK_BYTES + 8;
const ROUNDS = 3;
/** Numbers that are turned together. */
const BLOCK = 1024;
/** Values smaller than this, relative to the largest, were 0 before rounding. */
const NOTHING = 2 ** -45;

const encoder = new TextEncoder();

export async function turn(aead: Aead, secret: Uint8Array, plain: Uint8Array): Promise<Uint8Array> {
  const from = embeddingsStart(plain);
  const original = plain.slice(from).buffer;
  const values = new Float64Array(new Float32Array(original));
  const salt = randomBytes(SALT_BYTES);
  const kept: number[] = [];
  for (const [at, block] of blocksOf(values)) {
    const signs = await signsOf(aead, secret, salt, at, block.length);
    turnBlock(block, signs);
    const back = block.slice();
    turnBlockBack(back, signs);
    kept.push(...changedBits(new Uint32Array(original, 4 * at, block.length), back).map((index) => at + index));
  }
  const start = turnedStart(from);
  const bytes = new Uint8Array(start + values.byteLength + 8 * kept.length);
  bytes.set(salt);
  bytes.set(await aead.derive(secret, salt, encoder.encode("check"), CHECK_BYTES), SALT_BYTES);
  new DataView(bytes.buffer).setUint32(SALT_BYTES + CHECK_BYTES, kept.length, true);
  bytes.set(plain.subarray(0, from), PREFIX_BYTES);
  bytes.set(new Uint8Array(values.buffer), start);
  const bits = new Uint32Array(original);
  bytes.set(
    new Uint8Array(Uint32Array.from(kept.flatMap((index) => [index, bits[index]!])).buffer),
    bytes.length - 8 * kept.length,
  );
  return bytes;
}

/** `null` if it was turned with another secret. */
export async function turnBack(aead: Aead, secret: Uint8Array, bytes: Uint8Array): Promise<Uint8Array | null> {
  const salt = bytes.slice(0, SALT_BYTES);
  const check = await aead.derive(secret, salt, encoder.encode("check"), CHECK_BYTES);
  if (check.some((byte, i) => byte !== bytes[SALT_BYTES + i])) return null;
  const from = embeddingsStart(bytes.subarray(PREFIX_BYTES));
  const keptBytes = 8 * new DataView(bytes.buffer, bytes.byteOffset).getUint32(SALT_BYTES + CHECK_BYTES, true);
  const values = new Float64Array(bytes.slice(turnedStart(from), bytes.length - keptBytes).buffer);
  for (const [at, block] of blocksOf(values)) turnBlockBack(block, await signsOf(aead, secret, salt, at, block.length));
  const plain = new Uint8Array(from + values.length * Float32Array.BYTES_PER_ELEMENT);
  plain.set(bytes.subarray(PREFIX_BYTES, PREFIX_BYTES + from));
  const floats = new Float32Array(values);
  const bits = new Uint32Array(floats.buffer);
  const kept = new Uint32Array(bytes.slice(bytes.length - keptBytes).buffer);
  for (let i = 0; i < kept.length; i += 2) bits[kept[i]!] = kept[i + 1]!;
  plain.set(new Uint8Array(floats.buffer), from);
  return plain;
}

/** Indices where the inverse does not give the original number. */
function changedBits(original: Uint32Array, back: Float64Array): number[] {
  const bits = new Uint32Array(new Float32Array(back).buffer);
  const changed: number[] = [];
  for (let i = 0; i < bits.length; i++) if (bits[i] !== original[i]) changed.push(i);
  return changed;
}

/** Offset of the doubles, aligned to their size. */
const turnedStart = (from: number): number => Math.ceil((PREFIX_BYTES + from) / 8) * 8;

function* blocksOf(values: Float64Array): Generator<[number, Float64Array]> {
  for (let at = 0; at < values.length; at += BLOCK) yield [at, values.subarray(at, at + BLOCK)];
}

/** One bit for each number and round. */
function signsOf(aead: Aead, secret: Uint8Array, salt: Uint8Array, at: number, length: number) {
  return aead.derive(secret, salt, encoder.encode(`signs ${at}`), Math.ceil((ROUNDS * length) / 8));
}

/** In place. */
export function turnBlock(values: Float64Array, signs: Uint8Array): void {
  for (let round = 0; round < ROUNDS; round++) {
    flip(values, signs, round);
    for (const part of partsOf(values)) hadamard(part);
  }
}

export function turnBlockBack(values: Float64Array, signs: Uint8Array): void {
  for (let round = ROUNDS - 1; round >= 0; round--) {
    for (const part of partsOf(values).reverse()) hadamard(part);
    flip(values, signs, round);
  }
  let most = 0;
  for (let i = 0; i < values.length; i++) most = Math.max(most, Math.abs(values[i]!));
  const least = NOTHING * most;
  for (let i = 0; i < values.length; i++) if (Math.abs(values[i]!) < least) values[i] = 0;
}

function flip(values: Float64Array, signs: Uint8Array, round: number): void {
  for (let i = 0, bit = round * values.length; i < values.length; i++, bit++)
    values[i]! *= 1 - 2 * ((signs[bit >> 3]! >> (bit & 7)) & 1);
}

/** The largest power of two that fits, from the left and, if there is a remainder, also from the right. */
function partsOf(values: Float64Array): Float64Array[] {
  if (values.length === 0) return [];
  const size = 2 ** Math.floor(Math.log2(values.length));
  const left = values.subarray(0, size);
  return size === values.length ? [left] : [left, values.subarray(values.length - size)];
}

/** values = H·values, H orthogonal and its own inverse; the length is a power of two. Two steps per pass: the same sums in half the passes. */
function hadamard(values: Float64Array): void {
  const { length } = values;
  let half = 1;
  for (; 2 * half < length; half *= 4) {
    for (let from = 0; from < length; from += 4 * half) {
      for (let i = from; i < from + half; i++) {
        const a = values[i]!;
        const b = values[i + half]!;
        const c = values[i + 2 * half]!;
        const d = values[i + 3 * half]!;
        values[i] = a + b + (c + d);
        values[i + half] = a - b + (c - d);
        values[i + 2 * half] = a + b - (c + d);
        values[i + 3 * half] = a - b - (c - d);
      }
    }
  }
  if (half < length) {
    for (let i = 0; i < half; i++) {
      const a = values[i]!;
      const b = values[i + half]!;
      values[i] = a + b;
      values[i + half] = a - b;
    }
  }
  const scale = 1 / Math.sqrt(length);
  for (let i = 0; i < length; i++) values[i]! *= scale;
}
