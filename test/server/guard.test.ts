/** What a caller is told whose token is not accepted. */
import { expect, it } from "vitest";
import { StatusCode } from "../../src/contract/index.js";
import { closedGuard, openGuard, tokenGuard } from "../../src/server/guard.js";
import { headersOf, type Refusal } from "../../src/server/refusal.js";
import { OAuthError, type OAuthErrorCode, type Verifier } from "../../src/token/index.js";

const guarded = (authorize: () => Promise<unknown>) =>
  tokenGuard({ authorize } as unknown as Verifier).admit("Bearer x", "127.0.0.1");

const refusalOf = (code: OAuthErrorCode, details?: ConstructorParameters<typeof OAuthError>[2]) =>
  guarded(() => Promise.reject(new OAuthError(code, "because", details))).catch(
    (error: Refusal) => error,
  ) as Promise<Refusal>;

it.each([
  ["invalid_token", 401, StatusCode.NOT_AUTHORIZED],
  ["insufficient_scope", 403, StatusCode.PERMISSION_DENIED],
  ["invalid_request", 400, StatusCode.BAD_REQUEST],
] as const)("%s (%i) is status %i, with the challenge", async (code, status, expected) => {
  const refused = await refusalOf(code, { status, headers: { "WWW-Authenticate": "Bearer" } });
  expect(refused).toMatchObject({ code: expected, message: "because" });
  expect(headersOf(refused)).toEqual({ "www-authenticate": "Bearer" });
});

it.each([500, 503])("a verifier that fails with %i is busy: the caller retries in five seconds", async (status) => {
  const cause = new Error("connection refused");
  const refused = await refusalOf("server_error", { status, headers: { "WWW-Authenticate": "Bearer" }, cause });
  expect(refused).toMatchObject({ code: StatusCode.BUSY, cause });
  expect(headersOf(refused)).toEqual({ "retry-after": "5" });
});

it("a box that is starting is busy for a second", async () => {
  const refused = await closedGuard.admit("Bearer x", "127.0.0.1").catch((error: Refusal) => error as Refusal);
  expect(refused).toMatchObject({ code: StatusCode.BUSY, status: { retryAfter: { seconds: 1n } } });
});

it("an unexpected failure is not taken for a refusal", async () => {
  const failure = new Error("the store is gone");
  await expect(guarded(() => Promise.reject(failure))).rejects.toBe(failure);
});

it("a token opens the scopes that it includes; without tokens, an address opens all", async () => {
  const bank = await guarded(async () => ({ clientId: "bank", gkScopes: new Set(["own"]) }));
  expect([bank.id, bank.mayTouch("own"), bank.mayTouch("other")]).toEqual(["bank", true, false]);
  const anybody = await openGuard.admit(null, "192.0.2.7");
  expect([anybody.id, anybody.mayTouch("other")]).toEqual(["192.0.2.7", true]);
});

it("a call is asked about its own scope: that the client lost another does not end it", async () => {
  const token = { clientId: "bank", gkScopes: new Set(["own", "lost"]) };
  const isRevoked = async ({ gkScopes }: { gkScopes: ReadonlySet<string> }) => gkScopes.has("lost");
  const verifier = { authorize: async () => token, isRevoked } as unknown as Verifier;
  const caller = await tokenGuard(verifier).admit("Bearer x", "127.0.0.1");
  expect([await caller.isRevoked!("own"), await caller.isRevoked!("lost")]).toEqual([false, true]);
});
