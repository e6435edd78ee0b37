/** A voiceprint service on one machine: HTTP, gRPC, gRPC-Web and Connect on one port. */
export type { NodeBindings } from "../token/peer-address.js";
export type { WebApp } from "./app-parts.js";
export { ConfigError, type ConfigSources, loadConfig, type ServerConfig, type ServerConfigInput } from "./config.js";
export type { FirstApplication, FirstOwner } from "./first-run.js";
export type { Caller, Guard } from "./guard.js";
export { jsonLog, type Log, type LogFields, type LogLevel } from "./log.js";
export { Service, type ServiceParts } from "./service.js";
export { type Box, type BoxParts, type FirstStart, startBox } from "./start.js";
