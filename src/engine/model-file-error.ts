/** Why a model file is refused. */
export type ModelFileErrorCode =
  | "NOT_A_MODEL"
  | "OTHER_VERSION"
  | "TRUNCATED"
  | "ALTERED"
  | "MALFORMED"
  | "OTHER_ARCHITECTURE"
  | "NO_DIGEST";

/** Not a valid model file, or one that this engine cannot run. */
export class ModelFileError extends Error {
  override readonly name = "ModelFileError";
  constructor(
    readonly code: ModelFileErrorCode,
    message: string,
  ) {
    super(message);
  }
}
