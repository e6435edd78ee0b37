/** A live call whose caller loses its access. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { WebSocket } from "ws";
import { connect, LiveCall } from "../../src/client/index.js";
import { type ListenResponse, StatusCode } from "../../src/contract/index.js";
import { configSchema } from "../../src/server/config.js";
import { jsonLog } from "../../src/server/log.js";
import { type Box, startBox } from "../../src/server/start.js";
import { fixtureEngine, rateHz } from "../processor/fixture-engine.js";

let box: Box;
beforeAll(async () => {
  const config = configSchema.parse({ port: 0, store: "memory" });
  box = await startBox(config, { engine: fixtureEngine(), log: jsonLog("silent") });
});
afterAll(() => box.stop());

async function posted(path: string, form: Record<string, string>): Promise<Response> {
  const { clientId, clientSecret } = box.firstApplication!;
  const authorization = `Basic ${btoa(`${clientId}:${clientSecret}`)}`;
  return fetch(`${box.url}${path}`, { method: "POST", headers: { authorization }, body: new URLSearchParams(form) });
}

async function opened(token: string) {
  const operations = connect({ url: box.url, token });
  const scope = { gkScopeId: { value: box.firstApplication!.scope } };
  const { gkEngagementId, gkSessionId } = await operations.startSession({ context: scope });
  const ids = { gkEngagementId: { value: gkEngagementId!.value }, gkSessionId: { value: gkSessionId!.value } };
  const context = { ...scope, ...ids, configsetId: "ivr-text-dependent" };
  const events: ListenResponse[] = [];
  const call = new LiveCall({
    url: box.url,
    token,
    start: {
      context,
      encoding: "pcm16",
      rate: rateHz,
      parties: [{ name: "caller", task: { case: "analyze", value: {} } }],
    },
    onEvent: (event) => events.push(event),
    WebSocket,
  });
  await expect.poll(() => events).toHaveLength(1);
  return { call, events };
}

it("ends when its token is revoked; a call with another token of the client goes on", async () => {
  const grant = { grant_type: "client_credentials", scope: "bio" };
  const [one, other] = await Promise.all(
    [1, 2].map(
      async () => ((await (await posted("/oauth2/token", grant)).json()) as { access_token: string }).access_token,
    ),
  );
  const [revoked, kept] = [await opened(one!), await opened(other!)];
  expect((await posted("/oauth2/revoke", { token: one! })).status).toBe(200);
  await expect(revoked.call.done).rejects.toMatchObject({
    code: StatusCode.NOT_AUTHORIZED,
    message: "the token was revoked",
  });
  kept.call.end();
  await kept.call.done;
  expect(kept.events.at(-1)!.event.case).toBe("result");
});
