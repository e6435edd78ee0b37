import { getRequestListener } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { stackOf } from "../contract/error-causes.js";
import { StatusCode } from "../contract/index.js";
import type { NodeBindings } from "../token/peer-address.js";
import type { AppParts, WebApp } from "./app-parts.js";
import { withCors } from "./http/cors.js";
import { localCallersOnly } from "./http/local-callers.js";
import { answerOn } from "./http/node-request.js";
import { openApi } from "./http/openapi.js";
import { type LoadedFile, loadFile } from "./http/static-files.js";
import { failureAnswer, requestIdOf } from "./http/transcoder.js";
import { requestOf, responseOf } from "./http/web-request.js";
import { headerOf, type NodeHandler, type NodeRequest } from "./listen.js";
import type { Log } from "./log.js";
import { needsWebSocket, Refusal, wrongVerb } from "./refusal.js";
import { createRpcHandler } from "./rpc.js";

type Env = { Bindings: NodeBindings };

export function createApp(parts: AppParts): WebApp {
  const { dispatcher, metrics, tokens, transcode } = parts;
  const app = new Hono<Env>();
  const refused = (error: unknown, c: Context<Env>): Response =>
    responseOf(failureAnswer(parts.log, error, requestIdOf(c.req.header("x-request-id"))));
  const addressOf = ({ env, req }: Context<Env>) =>
    parts.peerAddress(env?.incoming?.socket?.remoteAddress, req.header("x-forwarded-for"));

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
        await parts.guard.admit(c.req.header("authorization") ?? null, addressOf(c));
      } catch (error) {
        return refused(error, c);
      }
    }
    return c.body(await metrics.text(), 200, { "content-type": metrics.registry.contentType });
  });
  // Written once: anybody may ask for it, and writing it takes milliseconds.
  let description: LoadedFile | null = null;
  const describe = (serverUrl: string) => {
    const tokenUrl = tokens ? { tokenUrl: `${serverUrl}/oauth2/token` } : {};
    return JSON.stringify(openApi({ serverUrl, version: parts.version, ...tokenUrl }));
  };
  app.get("/openapi.json", (c) => {
    description ??= loadFile(Buffer.from(describe(parts.publicUrl())));
    return description.answer(c.req.raw, "application/json", { "cache-control": "no-cache" });
  });
  if (parts.operator) {
    const operator = parts.operator;
    app.on(["GET", "HEAD"], ["/operator", "/operator/*"], (c) => operator(c.req.raw));
    // The only requests that change something; everything else in the view is read-only.
    app.on(["PUT", "DELETE"], "/operator/v1/profiles/*", (c) => operator(c.req.raw));
  }
  app.post("/telephony/*", async (c) => (await parts.announce?.(c.req.path, c.req.raw, addressOf(c))) ?? c.notFound());
  const readOnly = [
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
    ...(parts.operator ? ["/operator", "/operator/*"] : []),
  ];
  app.on(["POST", "PUT", "PATCH", "DELETE"], readOnly, (c) => refused(wrongVerb(c.req.method, ["GET"]), c));
  app.all("*", async (c) => {
    if (tokens?.owns(c.req.path)) return tokens.fetch(c.req.raw, c.env);
    const answer = await transcode(requestOf(c.req.raw, addressOf(c)));
    return (answer && responseOf(answer)) ?? parts.page?.(c.req.raw) ?? c.notFound();
  });
  app.notFound((c) =>
    refused(
      parts.isSocket(c.req.path)
        ? needsWebSocket(c.req.path, c.env?.incoming?.httpVersionMajor ?? 1)
        : new Refusal(StatusCode.NOT_FOUND, "this path does not exist; /openapi.json lists the paths"),
      c,
    ),
  );
  app.onError(refused);
  return app;
}

/**
 * Tries gRPC, gRPC-Web and Connect first, then the contract's HTTP bindings, then the app. The app has the bindings
 * too, but wrapping a call in its Request and Response objects would cost more than the call itself.
 */
export function createNodeHandler(
  app: WebApp,
  parts: Pick<AppParts, "dispatcher" | "transcode" | "peerAddress" | "ready"> & {
    readonly messageBytes: number;
    readonly liveIdleSeconds: number;
    readonly log: Log;
    readonly origins: readonly string[];
    /** The local address of the box. Set only if tokens are off. */
    readonly localOnly?: () => string;
  },
): NodeHandler {
  const addressOf = (request: NodeRequest) =>
    parts.peerAddress(request.socket?.remoteAddress, headerOf(request, "x-forwarded-for"));
  const plain = getRequestListener(app.fetch as never, {
    overrideGlobalObjects: false,
    // Some load balancers check health with HTTP/1.0, which needs no Host header.
    hostname: "localhost",
    // `listen.ts` discards unread bodies for all transports.
    autoCleanupIncoming: false,
  });
  const { dispatcher, messageBytes, liveIdleSeconds, log } = parts;
  const health = { ready: parts.ready, stopping: () => dispatcher.stopping };
  const rpc = createRpcHandler(
    { dispatcher, messageBytes, liveIdleSeconds, log, addressOf, health },
    (request, response) => {
      const answered = answerOn(request, response, addressOf(request), parts.transcode);
      if (answered)
        answered.catch((error: unknown) => log.error("a response could not be sent", { stack: stackOf(error) }));
      else void plain(request as never, response as never);
    },
  );
  const shared = withCors(rpc, parts.origins);
  return parts.localOnly ? localCallersOnly(shared, parts.localOnly, parts.origins) : shared;
}
