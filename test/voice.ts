/** The voices of tests are those of the demonstration: synthesized, the same samples for the same arguments. */

export { pcm16Wav as wav } from "../src/audio/wav-writer.js";
export * from "../src/demo/voice.js";
