/** The parts of the plain HTTP routes, in types that programs on the box can use without those of a browser. */
import type { NodeBindings, PeerAddress } from "../token/peer-address.js";
import type { Dispatcher } from "./dispatch.js";
import type { Guard } from "./guard.js";
import type { Transcoder } from "./http/transcoder.js";
import type { Log } from "./log.js";
import type { ServerMetrics } from "./metrics.js";

/** All plain HTTP routes. They work without a port: `app.request(…)`. */
export interface WebApp {
  fetch(request: Request, bindings?: NodeBindings): Response | Promise<Response>;
  request(path: string, init?: RequestInit): Response | Promise<Response>;
}

export interface AppParts {
  readonly dispatcher: Dispatcher;
  readonly guard: Guard;
  readonly log: Log;
  readonly metrics: ServerMetrics;
  readonly metricsAccess: "open" | "token" | "off";
  readonly transcode: Transcoder;
  readonly version: string;
  readonly peerAddress: PeerAddress;
  /** The public address of the box. */
  readonly publicUrl: () => string;
  /** Whether WebSockets connect to this path. */
  readonly isSocket: (path: string) => boolean;
  /** Resolves when store and engine can work; rejects otherwise. */
  readonly ready: () => Promise<void>;
  /** The pages for a browser; `null` for a path that they do not have. */
  readonly page?: (request: Request) => Response | null;
  /** Everything under /operator; absent if tokens come from another issuer. */
  readonly operator?: (request: Request) => Response | Promise<Response>;
  /** Announces calls to telephone lines; `null` for a path of no line. */
  readonly announce?: (path: string, request: Request, address: string) => Promise<Response> | null;
  /** Token, engagement and management endpoints; absent if tokens come from another issuer. */
  readonly tokens?: {
    readonly owns: (path: string) => boolean;
    readonly fetch: (request: Request, env?: unknown) => Response | Promise<Response>;
  };
}
