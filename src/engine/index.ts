export { EngineError, type EngineErrorCode, NotSupportedError } from "./engine-error.js";
export { ModelFileError, type ModelFileErrorCode } from "./model-file.js";
export { type EngineOptions, openEngine } from "./open-engine.js";
export type * from "./port.js";
export { VoiceEngine } from "./voice-engine.js";
