export { AudioError, type AudioErrorCode } from "./audio-error.js";
export type { ByteSource } from "./byte-source.js";
export type { RawEncoding, RawFormat, Recording } from "./port.js";
export { readRecording } from "./read-recording.js";
export { recordingOfSamples, type Samples } from "./samples.js";
