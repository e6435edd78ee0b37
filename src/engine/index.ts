export { EngineError, type EngineErrorCode, NotSupportedError } from "./engine-error.js";
export { ModelFileError, type ModelFileErrorCode } from "./model-file-error.js";
export { type EngineOptions, type OpenedEngine, openEngine } from "./open-engine.js";
export type * from "./port.js";
