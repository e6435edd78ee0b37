/** Builds WAV files field by field, valid or with wrong headers. */
export interface WavFields {
  readonly tag?: number;
  readonly channels?: number;
  readonly rateHz?: number;
  readonly bits?: number;
  readonly bytesPerFrame?: number;
  readonly extension?: Uint8Array;
  readonly data?: Uint8Array;
  readonly dataBytes?: number;
  readonly riffBytes?: number;
  readonly riff?: string;
  /** Chunks between format and data. */
  readonly between?: readonly Uint8Array[];
}

export function chunk(id: string, body: Uint8Array, claimedBytes = body.length): Uint8Array {
  const bytes = new Uint8Array(8 + body.length + (body.length & 1));
  bytes.set(new TextEncoder().encode(id));
  new DataView(bytes.buffer).setUint32(4, claimedBytes, true);
  bytes.set(body, 8);
  return bytes;
}

export function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

export function wav(fields: WavFields): Uint8Array {
  const { tag = 1, channels = 1, rateHz = 8000, bits = 16, data = new Uint8Array(0) } = fields;
  const extension = fields.extension ?? new Uint8Array(0);
  const format = new Uint8Array(16 + extension.length);
  const view = new DataView(format.buffer);
  const bytesPerFrame = fields.bytesPerFrame ?? (channels * bits) >> 3;
  view.setUint16(0, tag, true);
  view.setUint16(2, channels, true);
  view.setUint32(4, rateHz, true);
  view.setUint32(8, rateHz * bytesPerFrame, true);
  view.setUint16(12, bytesPerFrame, true);
  view.setUint16(14, bits, true);
  format.set(extension, 16);
  const body = joined(
    new TextEncoder().encode("WAVE"),
    chunk("fmt ", format),
    ...(fields.between ?? []),
    chunk("data", data, fields.dataBytes),
  );
  return chunk(fields.riff ?? "RIFF", body, fields.riffBytes);
}

export function pcm16(samples: readonly number[]): Uint8Array {
  return new Uint8Array(Int16Array.from(samples).buffer);
}

/** The extension of WAVE_FORMAT_EXTENSIBLE for a sub-format. */
export function extensible(subFormat: number, validBits: number): Uint8Array {
  const bytes = new Uint8Array(24);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, 22, true);
  view.setUint16(2, validBits, true);
  view.setUint16(8, subFormat, true);
  bytes.set([0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71], 10);
  return bytes;
}
