/** Recognizes recordings other than WAV by their first bytes: the formats that phones and web pages send. */

const containers: readonly { readonly name: string; readonly at: number; readonly magic: readonly string[] }[] = [
  // Without a tag: MPEG 1, 2 and 2.5 (8 to 12 kHz, as of telephone calls), without and with a checksum.
  { name: "MP3", at: 0, magic: ["ID3", "\xff\xfb", "\xff\xfa", "\xff\xf3", "\xff\xf2", "\xff\xe3", "\xff\xe2"] },
  { name: "AAC", at: 0, magic: ["\xff\xf1", "\xff\xf0", "\xff\xf9", "\xff\xf8"] },
  { name: "Ogg (Opus or Vorbis)", at: 0, magic: ["OggS"] },
  { name: "FLAC", at: 0, magic: ["fLaC"] },
  { name: "AIFF", at: 0, magic: ["FORM"] },
  { name: "Sun AU", at: 0, magic: [".snd"] },
  { name: "MP4 or M4A", at: 4, magic: ["ftyp"] },
  { name: "WebM or Matroska", at: 0, magic: ["\x1a\x45\xdf\xa3"] },
  { name: "AMR", at: 0, magic: ["#!AMR"] },
  { name: "Core Audio", at: 0, magic: ["caff"] },
  { name: "big-endian WAV (RIFX)", at: 0, magic: ["RIFX"] },
];

/** The name of the format; `null` for WAV and for unknown formats. */
export function compressedFormat(head: Uint8Array): string | null {
  const text = String.fromCharCode(...head.subarray(0, 16));
  return containers.find(({ at, magic }) => magic.some((one) => text.startsWith(one, at)))?.name ?? null;
}
