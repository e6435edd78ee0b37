/** The voices of tests are those of the demonstration: synthesized, the same samples for the same arguments. */
export * from "../src/demo/voice.js";
