/** A voiceprint service on one machine: HTTP, gRPC, gRPC-Web and Connect on one port. */
export { ConfigError, loadConfig, type ServerConfig, type ServerConfigInput } from "./config.js";
export { jsonLog, type Log, type LogFields } from "./log.js";
export { Service, type ServiceParts } from "./service.js";
export { type Box, type FirstStart, startBox } from "./start.js";
