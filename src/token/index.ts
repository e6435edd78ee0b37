export {
  AGENT_STATES,
  type AgentState,
  type Agents,
  type Availability,
  type BusinessUnit,
  type ServiceAgent,
} from "../engagement/agents.js";
export type { EngagementTokenRequest, EngagementTokenResponse } from "../engagement/engagement-token.js";
export { DAYS, type Day, type Hours, isOpen, type Window } from "../engagement/hours.js";
export { ENGAGEMENT_SCOPES, type Registration, type Registrations } from "../engagement/registrations.js";
export { AUDIENCES, type Audiences, LIFETIMES } from "./access-token.js";
export { createTokenApp, type TokenApp } from "./app.js";
export type {
  Application,
  Applications,
  AuthenticatedClient,
  Client,
  Endpoints,
  Geography,
  GeographySettings,
  NewApplication,
} from "./applications.js";
export { type Audit, type AuditEvent, type AuditLog, auditTo } from "./audit.js";
export type { ClientPassword } from "./basic.js";
export {
  basicAuthorization,
  createTokenCache,
  grpcMetadataGenerator,
  type TokenCache,
  type TokenCacheOptions,
  TokenRequestError,
} from "./cache.js";
export type { ClientCredentialsRequest, TokenResponse } from "./client-credentials.js";
export { type ClientIdParts, formatClientId, parseClientId } from "./client-id.js";
export { type Clock, type Random, systemClock, systemRandom } from "./clock.js";
export {
  ConfigError,
  type CredentialBlock,
  credentialBlocks,
  type Params,
  type ParamsKind,
  readConfig,
  readParams,
  writeConfig,
  writeParams,
} from "./config-file.js";
export type { CredentialKind, ProfileCredential, ProfileCredentials } from "./credentials.js";
export type { Documents } from "./documents.js";
export { errorResponse, OAuthError, type OAuthErrorCode } from "./errors.js";
export type { Keyring, KeyringOptions, SigningAlgorithm } from "./keyring.js";
export { administerService, createManagementClient, type TokenAdministration } from "./management-client.js";
export type { OwnPage } from "./own-pages.js";
export {
  createPeerAddress,
  type NodeBindings,
  type PeerAddress,
  type TransportOptions as TokenAppOptions,
} from "./peer-address.js";
export type { Refusal } from "./refusals/en.js";
export type { IssuedToken } from "./revocations.js";
export { PLATFORM_SCOPE, RUNTIME_SCOPES, type RuntimeScope } from "./scopes.js";
export type { Cost } from "./secret.js";
export { createTokenService, type TokenService, type TokenServiceOptions } from "./service.js";
export type { BrowserSession } from "./sessions.js";
export type { ToolingUser } from "./tooling-user.js";
export { formatUrn, parseUrn, type ResourceUrn, UrnError, type UrnErrorCode, type WordsetService } from "./urn.js";
export type { Role, User, UserChange, Users } from "./users.js";
export {
  bearerError,
  createVerifier,
  type KeySource,
  type TrustedIssuer,
  type VerifiedToken,
  type Verifier,
  type VerifierOptions,
} from "./verify.js";
