/** Tests use the demo's synthesized voices: the same samples for the same arguments. */

export { pcm16Wav as wav } from "../src/audio/wav-writer.js";
export * from "../src/demo/voice.js";
