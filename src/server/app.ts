import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import { StatusCode } from "../contract/index.js";
import type { PeerAddress } from "../token/peer-address.js";
import type { Dispatcher } from "./dispatch.js";
import { asStatusError } from "./dispatch.js";
import type { Guard } from "./guard.js";
import { withCors } from "./http/cors.js";
import { openApi } from "./http/openapi.js";
import { type Caller, createTranscoder, errorResponse, requestIdOf, type TranscoderLimits } from "./http/transcoder.js";
import type { NodeHandler, NodeRequest } from "./listen.js";
import type { Log } from "./log.js";
import type { ServerMetrics } from "./metrics.js";
import { Refusal } from "./refusal.js";
import { createRpcHandler } from "./rpc.js";

export interface AppParts {
  readonly dispatcher: Dispatcher;
  readonly guard: Guard;
  readonly metrics: ServerMetrics;
  readonly metricsAccess: "open" | "token" | "off";
  readonly limits: TranscoderLimits & { readonly callSeconds: number };
  readonly version: string;
  readonly peerAddress: PeerAddress;
  /** The address that callers use. */
  readonly publicUrl: () => string;
  /** Resolves when store and engine can work; rejects otherwise. */
  readonly ready: () => Promise<void>;
  /** What people see with a browser; `null` for a path it does not have. */
  readonly page?: (request: Request) => Response | null;
  /** Everything under /operator; absent where tokens come from elsewhere. */
  readonly operator?: (request: Request) => Response | Promise<Response>;
  /** Token, engagement and management endpoints; absent where tokens come from elsewhere. */
  readonly tokens?: {
    readonly owns: (path: string) => boolean;
    readonly fetch: (request: Request, env?: unknown) => Response | Promise<Response>;
  };
}

type Env = { Bindings: Partial<HttpBindings> };

/** Everything that is plain HTTP. Runs without a port: `app.request(…)`. */
export function createApp(parts: AppParts): Hono<Env> {
  const { dispatcher, metrics, tokens } = parts;
  const transcode = createTranscoder(dispatcher, parts.limits);
  const app = new Hono<Env>();

  app.get("/healthz", (c) => c.text("ok\n"));
  app.get("/readyz", async (c) => {
    if (dispatcher.stopping) return c.text("stopping\n", 503);
    try {
      await parts.ready();
      return c.text("ready\n");
    } catch {
      return c.text("not ready\n", 503);
    }
  });
  app.get("/metrics", async (c) => {
    if (parts.metricsAccess === "off") return c.notFound();
    if (parts.metricsAccess === "token") {
      try {
        await parts.guard.admit(c.req.header("authorization") ?? null, addressOf(c.req.raw, c.env, parts.peerAddress));
      } catch (error) {
        return errorResponse(asStatusError(error), requestIdOf(c.req.header("x-request-id")));
      }
    }
    return c.body(await metrics.registry.metrics(), 200, { "content-type": metrics.registry.contentType });
  });
  app.get("/openapi.json", (c) => {
    const serverUrl = parts.publicUrl();
    const tokenUrl = tokens ? { tokenUrl: `${serverUrl}/oauth2/token` } : {};
    return c.json(openApi({ serverUrl, version: parts.version, ...tokenUrl }));
  });
  if (parts.operator) {
    const operator = parts.operator;
    app.on(["GET", "HEAD"], ["/operator", "/operator/*"], (c) => operator(c.req.raw));
  }
  app.all("*", async (c) => {
    if (tokens?.owns(c.req.path)) return tokens.fetch(c.req.raw, c.env);
    const caller = callerOf(c.req.raw, c.env, parts.peerAddress);
    return (await transcode(c.req.raw, caller)) ?? parts.page?.(c.req.raw) ?? c.notFound();
  });
  app.notFound((c) =>
    errorResponse(
      new Refusal(StatusCode.NOT_FOUND, "there is nothing at this path; /openapi.json lists what there is"),
      requestIdOf(c.req.header("x-request-id")),
    ),
  );
  app.onError((error, c) => errorResponse(asStatusError(error), requestIdOf(c.req.header("x-request-id"))));
  return app;
}

function addressOf(request: Request, env: Partial<HttpBindings> | undefined, peerAddress: PeerAddress): string {
  return peerAddress(env?.incoming?.socket?.remoteAddress, request.headers.get("x-forwarded-for"));
}

function callerOf(request: Request, env: Partial<HttpBindings> | undefined, peerAddress: PeerAddress): Caller {
  const incoming = env?.incoming;
  return {
    address: addressOf(request, env, peerAddress),
    signal: callerSignal(request, env),
    // Left open when reading ends early: the answer still has to go out.
    ...(incoming ? { body: () => incoming.iterator({ destroyOnReturn: false }) } : {}),
  };
}

/** Aborted when the caller goes away. Asked of the connection itself: asking the request would build all that a request can be. */
function callerSignal(request: Request, env: Partial<HttpBindings> | undefined): AbortSignal {
  const outgoing = env?.outgoing;
  if (!outgoing) return request.signal;
  const gone = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) gone.abort(new Error("the connection closed"));
  });
  return gone.signal;
}

/** gRPC, gRPC-Web and Connect where their paths are asked for, the app for everything else. */
export function createNodeHandler(
  app: Hono<Env>,
  parts: Pick<AppParts, "dispatcher" | "limits" | "peerAddress"> & {
    readonly log: Log;
    readonly origins: readonly string[];
  },
): NodeHandler {
  const plain = getRequestListener(app.fetch as never, {
    overrideGlobalObjects: false,
    // What is left unread is ended for all transports alike, where they listen.
    autoCleanupIncoming: false,
  });
  const rpc = createRpcHandler(
    {
      dispatcher: parts.dispatcher,
      messageBytes: parts.limits.messageBytes,
      log: parts.log,
      addressOf: (request) => parts.peerAddress(request.socket?.remoteAddress, forwardedFor(request)),
    },
    (request, response) => {
      void plain(request as never, response as never);
    },
  );
  return withCors(rpc, parts.origins);
}

function forwardedFor({ headers }: NodeRequest): string | undefined {
  const value = headers["x-forwarded-for"];
  return Array.isArray(value) ? value.join() : value;
}
