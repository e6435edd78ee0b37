import { Hono } from "hono";
import { z } from "zod";
import { stackOf } from "../../contract/error-causes.js";
import { ConsentState, StatusCode, StatusError } from "../../contract/index.js";
import type { Operations } from "../../contract/operations.js";
import { readLastEvaluation } from "../../evaluate/last-evaluation.js";
import type { PrintsOfModel } from "../../processor/prints-by-model.js";
import type { GroupSize, Store } from "../../store/port.js";
import type { Audit } from "../../token/audit.js";
import { errorResponse, invalidRequest, NO_STORE, OAuthError } from "../../token/errors.js";
import { readJson } from "../../token/form.js";
import type { TokenService } from "../../token/service.js";
import type { ToolingUser } from "../../token/tooling-user.js";
import { managed, serverFailed } from "../../token/transport.js";
import type { FieldRate } from "../../voiceprint/field-rates.js";
import type { LiveCalls } from "../limits/live-calls.js";
import type { WorkQueue } from "../limits/work-queue.js";
import type { Log } from "../log.js";
import type { LoadHistory } from "./load-history.js";
import { holds, limitOf, MOST_ROWS, oneOf, page, wholeNumber } from "./page.js";
import { Profiles } from "./profiles.js";
import { DECISIONS, OWNER_KINDS, PROFILE_STATES } from "./search.js";
import { decisionView, Sessions } from "./sessions.js";
import type { OperatorAnswers, WatchlistView } from "./view.js";

export interface OperatorParts {
  readonly store: Store;
  /** The operations of the contract that the view uses. */
  readonly operations: Pick<
    Operations,
    "getSessionDecision" | "deleteVoiceprintProfile" | "setVoiceprintProfileConsent"
  >;
  readonly queue: WorkQueue;
  readonly load: LoadHistory;
  readonly fieldRates: () => Promise<readonly FieldRate[]>;
  readonly liveCalls: LiveCalls;
  readonly toolingUser: ToolingUser;
  readonly applications: Pick<TokenService["applications"], "list">;
  /** Scopes in use without an application, if tokens are off. */
  readonly openScopes: readonly string[];
  readonly version: string;
  readonly modelRevision: string;
  readonly calibrationRevision: string;
  readonly printsByModel: (scope: string) => Promise<readonly PrintsOfModel[]>;
  /** Whether prints of a model with this revision are scored here. */
  readonly canBeScored: (revision: string) => boolean;
  /** Where `vivavoce evaluate` writes its figures. */
  readonly evaluationFile: string;
  /** The files of the view itself; public. */
  readonly files: (request: Request) => Response | null;
  readonly log: Log;
  /** Receives every change and who made it. */
  readonly audit: Audit;
}

type Env = { Variables: { user: string } };

const MOST_SEARCHED = 256;
const LATEST = Number.MAX_SAFE_INTEGER;
const SCOPES_FOR_MS = 10_000;

const consentChange = z.strictObject({ state: z.enum(["given", "withdrawn"]), reference: z.string().max(256) });

/** Everything under /operator: the files of the view are public, its data is for owners only. */
export function createOperatorApp(parts: OperatorParts): Hono<Env> {
  const { store, operations, queue, load } = parts;
  const profiles = new Profiles(store, parts.canBeScored);
  const sessions = new Sessions(store, operations);
  const app = new Hono<Env>();
  app.onError((error) => {
    if (error instanceof OAuthError) return errorResponse(error);
    if (error instanceof StatusError && error.code === StatusCode.NOT_FOUND)
      return errorResponse(new OAuthError("not_found", error.message, { refusal: "profileNotFound" }));
    if (error instanceof StatusError && error.code === StatusCode.INVALID_REQUEST)
      return errorResponse(invalidRequest(error.message));
    parts.log.error("a request of the operator view failed", { stack: stackOf(error) });
    return errorResponse(serverFailed(error));
  });

  app.use("/operator/v1/*", async (c, next) => {
    const user = await parts.toolingUser(c.req.header("authorization"));
    if (user.role !== "owner")
      throw new OAuthError("access_denied", "only owners may use the operator view", { refusal: "ownersOnly" });
    c.set("user", user.name);
    await next();
    if (c.req.method !== "GET") parts.audit(managed(c, user.name));
    for (const [name, value] of Object.entries(NO_STORE)) c.header(name, value);
  });

  let known: { readonly scopes: readonly string[]; readonly at: number } = { scopes: [], at: 0 };

  async function scopes(): Promise<readonly string[]> {
    const bound = (await parts.applications.list()).flatMap(({ clients }) =>
      clients.flatMap(({ gkScopes }) => gkScopes),
    );
    known = { scopes: [...new Set([...parts.openScopes, ...bound])].sort(), at: load.now() };
    return known.scopes;
  }

  /** Reading the scopes unseals all applications: with hundreds of them, too much for every request of a view that sends one a second. */
  const isKnown = (scope: string) => Math.abs(load.now() - known.at) < SCOPES_FOR_MS && known.scopes.includes(scope);

  async function scopeOf(scope: string | undefined): Promise<string> {
    if (!scope) throw invalidRequest("scope is missing");
    if (!isKnown(scope) && !(await scopes()).includes(scope))
      throw new OAuthError("access_denied", "no application of this box is bound to this scope", {
        refusal: "scopeNotBound",
      });
    return scope;
  }

  app.get("/operator/v1/box", async (c) => {
    const { version, modelRevision, calibrationRevision } = parts;
    const box = { user: c.get("user"), version, modelRevision, calibrationRevision, scopes: await scopes() };
    return c.json(box satisfies OperatorAnswers["box"]);
  });

  app.get("/operator/v1/load", (c) => {
    const since = wholeNumber("since", c.req.query("since"), 0, 0, Number.MAX_SAFE_INTEGER);
    load.sample();
    const { running, waiting, concurrent, capacity } = queue;
    const [now, spanMs, spans] = [load.now(), load.spanMs, load.since(since)];
    return c.json({ now, running, waiting, concurrent, capacity, spanMs, spans } satisfies OperatorAnswers["load"]);
  });

  app.get("/operator/v1/calls", (c) => {
    const { capacity } = parts.liveCalls;
    const calls = parts.liveCalls.list().slice(0, MOST_ROWS);
    return c.json({ now: load.now(), capacity, calls } satisfies OperatorAnswers["calls"]);
  });

  app.get("/operator/v1/decisions", async (c) => {
    const limit = limitOf(c.req.query("limit"));
    const checks = await store.sessions.recentChecks(await scopeOf(c.req.query("scope")), limit);
    return c.json(checks.map(decisionView) satisfies OperatorAnswers["decisions"]);
  });

  app.get("/operator/v1/profiles", async (c) => {
    const search = {
      text: searchOf(c.req.query("search")),
      state: oneOf("state", c.req.query("state"), PROFILE_STATES),
      kind: oneOf("kind", c.req.query("kind"), OWNER_KINDS),
    };
    const [limit, scope] = [limitOf(c.req.query("limit")), await scopeOf(c.req.query("scope"))];
    const found = await profiles.find(scope, search, c.req.query("after") || null, limit);
    return c.json(found satisfies OperatorAnswers["profiles"]);
  });

  app.get("/operator/v1/profiles/:id", async (c) => {
    const found = await profiles.detail(await scopeOf(c.req.query("scope")), c.req.param("id"));
    if (!found)
      throw new OAuthError("not_found", "there is no such profile in this scope", { refusal: "profileNotFound" });
    return c.json(found satisfies OperatorAnswers["profile"]);
  });

  app.delete("/operator/v1/profiles/:id", async (c) => {
    await operations.deleteVoiceprintProfile(profileIn(await scopeOf(c.req.query("scope")), c.req.param("id")));
    return c.body(null, 204);
  });

  app.put("/operator/v1/profiles/:id/consent", async (c) => {
    const scope = await scopeOf(c.req.query("scope"));
    const change = consentChange.safeParse(await readJson(c.req.raw));
    if (!change.success)
      throw invalidRequest(
        "the body must have state (given or withdrawn) and reference (at most 256 characters)",
        "referenceLength",
      );
    await operations.setVoiceprintProfileConsent({
      ...profileIn(scope, c.req.param("id")),
      state: change.data.state === "given" ? ConsentState.GIVEN : ConsentState.WITHDRAWN,
      reference: change.data.reference,
    });
    return c.body(null, 204);
  });

  app.get("/operator/v1/sessions", async (c) => {
    const timeOf = (name: "from" | "until") => {
      const at = wholeNumber(name, c.req.query(name), -1, 0, LATEST);
      return at < 0 ? null : at;
    };
    const search = {
      text: searchOf(c.req.query("search")),
      decision: oneOf("decision", c.req.query("decision"), DECISIONS),
      from: timeOf("from"),
      until: timeOf("until"),
    };
    const [limit, scope] = [limitOf(c.req.query("limit")), await scopeOf(c.req.query("scope"))];
    const found = await sessions.find(scope, search, c.req.query("after") || null, limit);
    return c.json(found satisfies OperatorAnswers["sessions"]);
  });

  app.get("/operator/v1/sessions/:id", async (c) => {
    const found = await sessions.detail(await scopeOf(c.req.query("scope")), c.req.param("id"));
    if (!found)
      throw new OAuthError("not_found", "there is no such session in this scope", { refusal: "sessionNotFound" });
    return c.json(found satisfies OperatorAnswers["session"]);
  });

  app.get("/operator/v1/watchlists", async (c) => {
    const limit = limitOf(c.req.query("limit"));
    const scope = await scopeOf(c.req.query("scope"));
    const found = await store.groups.sizes(scope, "watchlist", c.req.query("after") || null, limit + 1);
    return c.json(page(found, limit, watchlistView) satisfies OperatorAnswers["watchlists"]);
  });

  app.get("/operator/v1/applications", async (c) => {
    const [search, limit, after] = [
      searchOf(c.req.query("search")),
      limitOf(c.req.query("limit")),
      c.req.query("after"),
    ];
    const found = (await parts.applications.list())
      .filter(({ id, name, environment, clients }) =>
        holds(search, id, name, environment, ...clients.flatMap((client) => [client.id, ...client.gkScopes])),
      )
      // Ids are UUIDs of version 7: the newest is the greatest.
      .filter(({ id }) => !after || id < after)
      .sort((one, other) => (one.id < other.id ? 1 : -1));
    return c.json(page(found, limit, (one) => one) satisfies OperatorAnswers["applications"]);
  });

  app.get("/operator/v1/evaluation", async (c) =>
    c.json({ evaluation: await readLastEvaluation(parts.evaluationFile) } satisfies OperatorAnswers["evaluation"]),
  );

  app.get("/operator/v1/models", async (c) => {
    const models = await parts.printsByModel(await scopeOf(c.req.query("scope")));
    return c.json({ models } satisfies OperatorAnswers["models"]);
  });

  app.get("/operator/v1/promises", async (c) =>
    c.json({ rates: await parts.fieldRates() } satisfies OperatorAnswers["promises"]),
  );

  app.all("/operator/v1/*", () => {
    throw new OAuthError("not_found", "this path does not exist");
  });
  app.get("/operator", (c) => c.redirect("/operator/", 308));
  app.all("*", (c) => parts.files(c.req.raw) ?? errorResponse(new OAuthError("not_found", "this path does not exist")));
  return app;
}

const profileIn = (scope: string, id: string) => ({
  context: { gkScopeId: { value: scope } },
  gkVoiceprintProfileId: { value: id },
});

function searchOf(text = ""): string {
  if (text.length > MOST_SEARCHED)
    throw invalidRequest(`search must have at most ${MOST_SEARCHED} characters, got ${text.length}`);
  return text.trim();
}

const watchlistView = ({ id, tag, profiles, owners }: GroupSize): WatchlistView => ({ id, tag, profiles, owners });
