export { type Clock, type Random, systemClock, systemRandom } from "./clock.js";
export { errorResponse, OAuthError, type OAuthErrorCode } from "./errors.js";
export {
  bearerError,
  createVerifier,
  type KeySource,
  type TrustedIssuer,
  type VerifiedToken,
  type Verifier,
  type VerifierOptions,
} from "./verify.js";
