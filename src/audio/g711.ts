/** ITU-T G.711: the 256 values of each law, in -1..1 (13 bits of A-law and 14 bits of µ-law, left-justified in 16). */

function alawValue(code: number): number {
  const folded = code ^ 0x55;
  const segment = (folded >> 4) & 7;
  const step = ((folded & 15) << 4) + 8;
  const magnitude = segment === 0 ? step : (step + 256) << (segment - 1);
  return folded & 0x80 ? magnitude : -magnitude;
}

function mulawValue(code: number): number {
  const folded = ~code & 0xff;
  const magnitude = ((((folded & 15) << 3) + 132) << ((folded >> 4) & 7)) - 132;
  return folded & 0x80 ? -magnitude : magnitude;
}

export const alaw = Float32Array.from({ length: 256 }, (_, code) => alawValue(code) / 32768);
export const mulaw = Float32Array.from({ length: 256 }, (_, code) => mulawValue(code) / 32768);
