/** Tests use the demo's synthesized voices: the same samples for the same arguments. */

export { pcm16Wav as wav } from "../src/audio/wav-writer.js";
export * from "../src/demo/voice.js";

export function tone(seconds: number, rateHz: number, hz: number, amplitude = 0.5): Float32Array {
  return Float32Array.from(
    { length: Math.round(seconds * rateHz) },
    (_, i) => amplitude * Math.sin((2 * Math.PI * hz * i) / rateHz),
  );
}
