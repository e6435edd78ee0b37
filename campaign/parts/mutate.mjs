/** Slightly damaged inputs: valid for their format, then changed in places. */
const INTERESTING = [0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff];

/** Up to a few changes: bits, bytes, known values, pieces removed, doubled, moved. */
export function mutated(bytes, random, most = 4) {
  let out = Uint8Array.from(bytes);
  for (let changes = random.below(most + 1); changes > 0 && out.length > 0; changes--) {
    const at = random.below(out.length);
    switch (random.below(7)) {
      case 0:
        out[at] ^= 1 << random.below(8);
        break;
      case 1:
        out[at] = random.below(256);
        break;
      case 2:
        if (at + 4 <= out.length) new DataView(out.buffer).setUint32(at, random.pick(INTERESTING), random.chance(0.8));
        break;
      case 3:
        if (at + 2 <= out.length) new DataView(out.buffer).setUint16(at, random.pick(INTERESTING) & 0xffff, true);
        break;
      case 4:
        out = out.slice(0, at);
        break;
      case 5: {
        const length = random.below(Math.min(64, out.length - at) + 1);
        out = Uint8Array.from([...out.subarray(0, at), ...out.subarray(at + length)]);
        break;
      }
      default: {
        const length = random.below(Math.min(64, out.length - at) + 1);
        out = Uint8Array.from([...out.subarray(0, at + length), ...out.subarray(at)]);
      }
    }
  }
  return out;
}

const text = (word) => [...word].map((letter) => letter.charCodeAt(0));
const u16 = (value) => [value & 255, (value >> 8) & 255];
const u32 = (value) => [value & 255, (value >>> 8) & 255, (value >>> 16) & 255, (value >>> 24) & 255];
const chunkOf = (id, body, claimed = body.length) => [
  ...text(id),
  ...u32(claimed),
  ...body,
  ...(body.length & 1 ? [0] : []),
];

const FORMATS = [
  { tag: 1, bits: [8, 16, 24, 32] },
  { tag: 3, bits: [32, 64] },
  { tag: 6, bits: [8] },
  { tag: 7, bits: [8] },
  { tag: 0x11, bits: [4] },
  { tag: 0xfffe, bits: [16, 24, 32] },
  { tag: 2, bits: [4] },
  { tag: 0x55, bits: [0] },
];
const RATES = [8000, 16000, 11025, 44100, 48000, 96000, 1, 0, 0xffffffff, 384000];

export function wavLike(random) {
  const { tag, bits } = random.pick(FORMATS);
  const depth = random.pick(bits);
  const channels = random.pick([1, 1, 2, 3, 8, 0, 255, 65535]);
  const rate = random.pick(RATES);
  const frameBytes = tag === 0x11 ? random.pick([256, 512, 0, 1]) : (channels * depth) >> 3;
  const extension =
    tag === 0xfffe
      ? [...u16(22), ...u16(depth), ...u32(3), ...u16(random.pick([1, 3, 6, 7])), ...random.bytes(14)]
      : tag === 0x11
        ? [...u16(2), ...u16(505)]
        : [];
  const format = [
    ...u16(tag),
    ...u16(channels),
    ...u32(rate),
    ...u32(rate * frameBytes),
    ...u16(frameBytes),
    ...u16(depth),
    ...extension,
  ];
  const samples = tag === 3 ? floats(random) : [...random.bytes(random.below(600))];
  const data = chunkOf("data", samples, random.chance(0.8) ? samples.length : random.pick(INTERESTING));
  const parts = [chunkOf("fmt ", format), data];
  if (random.chance(0.3))
    parts.splice(
      random.below(3),
      0,
      chunkOf(random.pick(["LIST", "fact", "ds64", "JUNK", "bext"]), [...random.bytes(random.below(40))]),
    );
  if (random.chance(0.1)) parts.reverse();
  const body = parts.flat();
  const riff = random.pick(["RIFF", "RIFF", "RIFF", "RF64", "BW64", "RIFX"]);
  return Uint8Array.from([
    ...text(riff),
    ...u32(random.chance(0.8) ? body.length + 4 : random.pick(INTERESTING)),
    ...text("WAVE"),
    ...body,
  ]);
}

function floats(random) {
  const values = Float32Array.from({ length: random.below(150) }, () =>
    random.pick([0, 0.5, -1, 1e30, -1e38, Number.NaN, Number.POSITIVE_INFINITY, 1e-40]),
  );
  return [...new Uint8Array(values.buffer)];
}

const ODD = [
  null,
  true,
  "",
  "x",
  "\u0000",
  "\ud800",
  -1,
  0,
  1e300,
  9e15,
  [],
  {},
  [[]],
  { value: null },
  { value: "" },
  // Neither `String` nor `Number` can convert it.
  { toString: 1, valueOf: 1 },
  "9".repeat(300),
  "AUDIO_OK",
];

/** JSON with values replaced, removed, added, nested. `share` of the values: of a large object only few, or it would never be nearly valid. */
export function oddJson(json, random, share = 0.1, depth = 0) {
  if (random.chance(share)) return random.pick(ODD);
  if (typeof json !== "object" || json === null || depth > 6) return json;
  if (Array.isArray(json)) return json.map((each) => oddJson(each, random, share, depth + 1));
  const out = {};
  for (const [name, value] of Object.entries(json))
    if (!random.chance(share / 2)) out[name] = oddJson(value, random, share, depth + 1);
  if (random.chance(share))
    out[random.pick(["__proto__", "constructor", "context", "status", "x", "gk_scope_id", ""])] = random.pick(ODD);
  return out;
}
