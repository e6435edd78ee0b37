/** Embeddings are turned by their scope's secret before they are sealed: exactly reversible, and meaningless without the secret. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import type { Template } from "../../src/engine/port.js";
import { decodeTemplate, encodeTemplate, joinProcessed, splitProcessed } from "../../src/store/encoding.js";
import { type Aead, webAead } from "../../src/store/seal/aead.js";
import { nodeAead } from "../../src/store/seal/aead-node.js";
import { fromHex, KeyRing, type KeyShelf } from "../../src/store/seal/key-ring.js";
import { openFolderShelf } from "../../src/store/seal/shelf-folder.js";
import { turn, turnBack, turnBlock, turnBlockBack } from "../../src/store/seal/transform.js";
import { type Place, Vault } from "../../src/store/seal/vault.js";
import { processedOf } from "./fixtures.js";

const secret = new Uint8Array(32).fill(3);
const templateOf = (embedding: Float32Array): Template => ({
  embedding,
  netSpeechSeconds: 9,
  snrDb: 20,
  bandwidthHz: 3400,
  revision: "5e".repeat(32),
});
/** The numbers under the seal, if rounding changed none. */
const numbersOf = (turned: Uint8Array, length: number) => new Float64Array(turned.slice(-8 * length).buffer);
const cosine = (a: ArrayLike<number>, b: ArrayLike<number>) => {
  const dot = (x: ArrayLike<number>, y: ArrayLike<number>) => Array.from(x).reduce((sum, v, i) => sum + v * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
};
/** As from an engine: unit length; some numbers are 0. */
const embeddings = fc
  .array(fc.oneof({ weight: 9, arbitrary: fc.integer({ min: -1_000_000, max: 1_000_000 }) }, fc.constant(0)), {
    minLength: 1,
    maxLength: 700,
  })
  .map((values) => {
    const length = Math.hypot(...values) || 1;
    return Float32Array.from(values, (value) => value / length);
  });

test.each([
  ["Node's", nodeAead, webAead],
  ["WebCrypto's", webAead, nodeAead],
] as [string, Aead, Aead][])("%s cryptography turns, the other turns back, to the bit", async (_name, one, other) => {
  await fc.assert(
    fc.asyncProperty(embeddings, async (embedding) => {
      const turned = await turn(one, secret, encodeTemplate(templateOf(embedding)));
      const back = await turnBack(other, secret, turned);
      expect(decodeTemplate(back!)).toEqual(templateOf(embedding));
    }),
    { numRuns: 40 },
  );
});

test("numbers that no engine produces are restored too: the smallest, the largest, none", async () => {
  const odd = Float32Array.of(1e-45, -0, 3e38, Number.NaN, Number.POSITIVE_INFINITY, 0, 1e-30, 0.5);
  for (const embedding of [odd, odd.slice(0, 2), odd.slice(6)]) {
    const turned = await turn(nodeAead, secret, encodeTemplate(templateOf(embedding)));
    const back = decodeTemplate((await turnBack(nodeAead, secret, turned))!).embedding;
    expect(new Uint32Array(back.buffer)).toEqual(new Uint32Array(embedding.buffer));
  }
});

test("audio models with any number of windows are restored, and with none", async () => {
  const window = (i: number) => ({
    embedding: Float32Array.from({ length: 256 }, (_, at) => Math.sin(i + at) / 16),
    speechSeconds: 3,
    startSeconds: 3 * i,
    endSeconds: 3 * i + 3,
  });
  for (const count of [0, 1, 9]) {
    const windows = Array.from({ length: count }, (_, i) => window(i));
    const voice = { windows, embedding: windows[0]?.embedding ?? null };
    const model = processedOf("scope", "session", count, { voice });
    const { plain, content } = splitProcessed(model);
    const turned = await turn(nodeAead, secret, content);
    expect(joinProcessed(plain, (await turnBack(nodeAead, secret, turned))!)).toEqual(model);
  }
});

test("it keeps lengths and hides directions: for the same voice in another scope, and when sealed again", async () => {
  const voice = Float32Array.from({ length: 256 }, (_, i) => Math.sin(i * i) / 12);
  const kept = [];
  for (const key of [secret, secret, new Uint8Array(32).fill(4)])
    kept.push(numbersOf(await turn(nodeAead, key, encodeTemplate(templateOf(voice))), 256));
  for (const [i, numbers] of kept.entries()) {
    expect(Math.hypot(...numbers)).toBeCloseTo(Math.hypot(...voice), 12);
    // Random directions in 256 dimensions: the cosine is normal with a deviation of 1/16; the limit is six of those.
    expect(Math.abs(cosine(numbers, voice))).toBeLessThan(6 / 16);
    for (const other of kept.slice(i + 1)) expect(Math.abs(cosine(numbers, other))).toBeLessThan(6 / 16);
  }
});

test("it is orthogonal for any number of values: lengths stay, and its transpose inverts it", () => {
  const numbers = fc.array(fc.integer({ min: -1_000, max: 1_000 }), { minLength: 1, maxLength: 1024 });
  fc.assert(
    fc.property(numbers, fc.uint8Array({ minLength: 384, maxLength: 384 }), (values, signs) => {
      const turned = Float64Array.from(values);
      turnBlock(turned, signs);
      expect(Math.hypot(...turned)).toBeCloseTo(Math.hypot(...values), 6);
      turnBlockBack(turned, signs);
      expect(Array.from(turned, Math.round).map((value) => value + 0)).toEqual(values);
    }),
    { numRuns: 60 },
  );
});

test.each([1, 2, 5, 8, 100])(
  "%i numbers are turned as defined: by signs and Hadamard matrices, three times",
  (length) => {
    const bit = (signs: Uint8Array, at: number) => (signs[at >> 3]! >> (at & 7)) & 1;
    const ones = (n: number) => n.toString(2).replaceAll("0", "").length;
    /** Sylvester's matrix, written out. */
    const hadamard = (values: number[]) =>
      values.map((_, i) =>
        values.reduce((sum, value, j) => sum + (ones(i & j) % 2 ? -value : value) / Math.sqrt(values.length), 0),
      );
    const signs = Uint8Array.from({ length: 64 }, (_, i) => 37 * i * i + 101);
    const values = Array.from({ length }, (_, i) => Math.sin(i + 1));
    const size = 2 ** Math.floor(Math.log2(length));
    let expected = values;
    for (let round = 0; round < 3; round++) {
      expected = expected.map((value, i) => (bit(signs, round * length + i) ? -value : value));
      expected = [...hadamard(expected.slice(0, size)), ...expected.slice(size)];
      if (size < length) expected = [...expected.slice(0, -size), ...hadamard(expected.slice(-size))];
    }
    const turned = Float64Array.from(values);
    turnBlock(turned, signs);
    // Both add up to 64 products of at most 1, three times, in double precision.
    for (const [i, value] of expected.entries()) expect(Math.abs(turned[i]! - value)).toBeLessThan(1e-13);
  },
);

test("a record that was stored earlier can be turned back", async () => {
  const stored = Buffer.from(
    "YcOeAPGAnFaPwN5axqHBgyedT1ZSpUzEAAAAAAAAAACRAAAAeyJuZXRTcGVlY2hTZWNvbmRzIjo5LCJzbnJEYiI6MjAsImJhbmR3aWR0aEh6Ijoz" +
      "NDAwLCJyZXZpc2lvbiI6IjVlNWU1ZTVlNWU1ZTVlNWU1ZTVlNWU1ZTVlNWU1ZTVlNWU1ZTVlNWU1ZTVlNWU1ZTVlNWU1ZTVlNWU1ZTVlNWUiLCJk" +
      "aW1lbnNpb25zIjo1fQAAAAAAAKZmZq6/AABAX2Zmzz8AAPDLzIzhPwAAIPr/f96/AACQLzNz5D8=",
    "base64",
  );
  const back = await turnBack(nodeAead, secret, Uint8Array.from(stored));
  expect(decodeTemplate(back!)).toEqual(templateOf(Float32Array.of(0.5, -0.5, 0.1, 0, 0.7)));
});

test("each 1,024 numbers are turned by themselves: records stored earlier depend on it", async () => {
  const embedding = new Float32Array(1030);
  embedding[1024] = 1;
  const turned = await turn(nodeAead, secret, encodeTemplate(templateOf(embedding)));
  // Numbers that the inverse would change are stored at the end, 8 bytes each.
  const kept = new DataView(turned.buffer).getUint32(24, true);
  const numbers = numbersOf(turned.slice(0, turned.length - 8 * kept), embedding.length);
  expect(numbers.subarray(0, 1024).every((value) => value === 0)).toBe(true);
  expect(numbers.subarray(1024).filter((value) => value !== 0).length).toBeGreaterThan(1);
});

test("a wrong secret is detected", async () => {
  const turned = await turn(nodeAead, secret, encodeTemplate(templateOf(new Float32Array(256).fill(1 / 16))));
  expect(await turnBack(nodeAead, new Uint8Array(32).fill(4), turned)).toBeNull();
});

describe("in the vault", () => {
  const root = mkdtempSync(join(tmpdir(), "vivavoce-transform-"));
  const shelves: KeyShelf[] = [];
  afterAll(async () => {
    for (const shelf of shelves) await shelf.close();
    rmSync(root, { recursive: true, force: true });
  });
  async function newShelf(): Promise<KeyShelf> {
    const shelf = await openFolderShelf(mkdtempSync(join(root, "keys-")), nodeAead);
    shelves.push(shelf);
    return shelf;
  }
  const place: Place = { scopeId: "scope", kind: "template", subjectId: "alice", recordId: "alice" };
  const plain = encodeTemplate(templateOf(new Float32Array(256).fill(1 / 16)));

  test("sealed data opens, also after all keys were rotated and in another process", async () => {
    const shelf = await newShelf();
    const ring = new KeyRing(shelf, nodeAead);
    const sealed = await new Vault(ring).seal(await ring.create("scope", "profile"), place, plain);
    expect(sealed[0]).toBe(2);
    expect(await ring.rotateAll()).toBe(1);
    expect(await new Vault(new KeyRing(shelf, nodeAead)).open(place, sealed)).toEqual(plain);
  });

  test("two processes that start at the same time have one secret", async () => {
    const shelf = await newShelf();
    const secrets = await Promise.all([1, 2, 3].map(() => new KeyRing(shelf, nodeAead).secret("scope")));
    expect(secrets[1]).toEqual(secrets[0]);
    expect(secrets[2]).toEqual(secrets[0]);
    expect(await new KeyRing(shelf, nodeAead).secret("other")).not.toEqual(secrets[0]);
  });

  test("data sealed before there was a secret still opens", async () => {
    const ring = new KeyRing(await newShelf(), nodeAead);
    const { id, key } = await ring.create("scope", "profile");
    const context = new TextEncoder().encode(
      JSON.stringify(["vivavoce sealed", "scope", "template", "alice", "alice"]),
    );
    const sealed = Uint8Array.of(1, ...fromHex(id), ...(await nodeAead.seal(key, plain, context)));
    expect(await new Vault(ring).open(place, sealed)).toEqual(plain);
  });

  test("a lost secret is reported, and no other voice is returned", async () => {
    const shelf = await newShelf();
    const ring = new KeyRing(shelf, nodeAead);
    const sealed = await new Vault(ring).seal(await ring.create("scope", "profile"), place, plain);
    for await (const keys of shelf.all("\0secrets"))
      await shelf.destroy(
        "\0secrets",
        keys.map(({ id }) => id),
      );
    const opened = new Vault(new KeyRing(shelf, nodeAead)).open(place, sealed);
    await expect(opened).rejects.toMatchObject({
      code: "key-lost",
      message: expect.stringMatching(/scope scope.*restore the keys/s),
    });
  });
});
