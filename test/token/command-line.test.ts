import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import { Command } from "commander";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { tokenCommand } from "../../src/cli/token.js";
import { createMemoryStore } from "../../src/store/memory.js";
import { createTokenApp } from "../../src/token/app.js";
import { createTokenService, type TokenService } from "../../src/token/service.js";
import { withEmptyDatabase } from "../store/empty-database.js";

/** Runs `vivavoce token …` and returns what it printed. */
async function run(...words: string[]): Promise<string> {
  let printed = "";
  const out = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  const err = vi.spyOn(process.stderr, "write").mockImplementation(() => true);
  try {
    const program = new Command().exitOverride();
    tokenCommand(program);
    await program.parseAsync(["token", ...words], { from: "user" });
  } finally {
    out.mockRestore();
    err.mockRestore();
  }
  return printed;
}
const json = async (...words: string[]) => JSON.parse(await run(...words, "--json"));

let folder: string;
let server: Server;
let service: TokenService;
let box: string[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "vivavoce-cli-"));
  let answer: (...pair: never[]) => unknown = () => {};
  server = createServer((request, response) => answer(request as never, response as never));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  service = createTokenService({
    documents: createMemoryStore().documents,
    issuer,
    passwordCost: { n: 1024, r: 8, p: 1 },
  });
  const app = createTokenApp(service);
  answer = getRequestListener((request, env) => app.fetch(request, env as never)) as never;
  const user = await service.users.create({ name: "olga", role: "owner", password: "correct horse battery" });
  const { credential, secret } = await service.credentials.create(user, { kind: "service", label: "command line" });
  box = ["--url", issuer, "--client-id", credential.clientId, "--client-secret", secret];
});

afterAll(async () => {
  server?.close();
  await rm(folder, { recursive: true, force: true });
});

describe("vivavoce token", () => {
  test("on a store that no box has open: from an empty store to credentials", { timeout: 180_000 }, async () => {
    const store = ["--store", await withEmptyDatabase(join(folder, "store"))];
    const created = await json("app", "create", "Bank", "--gk-scope", "default", ...store);
    expect(created).toEqual({
      applicationId: expect.any(String),
      clientId: `appID:${created.applicationId}:geo:local:clientName:default`,
      clientSecret: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect(await json("user", "create", "olga", "--role", "owner", ...store)).toMatchObject({
      name: "olga",
      role: "owner",
      password: expect.any(String),
    });
    await expect(run("user", "credential", "robot", "--user", "nobody", ...store)).rejects.toThrow(
      "user nobody does not exist",
    );
    await expect(run("user", "credential", "robot", ...store)).rejects.toThrow(
      "--user is required, unless --url is given",
    );
  });

  test("on a box: applications and clients", async () => {
    const { applicationId, clientId, clientSecret } = await json(
      "app",
      "create",
      "Bank",
      "--environment",
      "dev",
      "--geo",
      "eu",
      "--gk-scope",
      "a",
      ...box,
    );
    expect(await service.applications.authenticate(clientId, clientSecret)).toMatchObject({ gkScopes: ["a"] });
    const listed = await run("app", "list", ...box);
    expect(listed).toContain(clientId);
    expect(listed).not.toContain(clientSecret);
    const second = await json("client", "create", applicationId, "ivr", ...box);
    const renewed = await json("client", "secret", second.clientId.replaceAll(":", "%3A"), ...box);
    expect(await service.applications.authenticate(second.clientId, second.clientSecret)).toBeNull();
    expect(await service.applications.authenticate(second.clientId, renewed.clientSecret)).not.toBeNull();
    expect(await run("client", "bind", second.clientId, "a", "b", ...box)).toContain("has access to a b");
    await run(
      "app",
      "geo",
      applicationId,
      "eu",
      "--oauth-scope",
      "bio",
      "--oauth-scope",
      "tts",
      "--tts",
      "tts.example:443",
      ...box,
    );
    const config = JSON.parse(await run("app", "config", applicationId, "--geo", "eu", ...box));
    expect(config).toMatchObject([
      { client_id: clientId, oauth_scopes: "tts bio", tts_endpoint: "tts.example:443", client_secret: "" },
      { client_id: second.clientId },
    ]);
    await run("client", "delete", second.clientId, ...box);
    await expect(run("client", "secret", second.clientId, ...box)).rejects.toThrow(
      `client ${second.clientId} does not exist`,
    );
    await expect(run("client", "delete", clientId, ...box)).rejects.toThrow(
      "the last client of an application cannot be deleted",
    );
    await expect(run("client", "secret", "nonsense", ...box)).rejects.toThrow("malformed client id: nonsense");
    await run("app", "delete", applicationId, ...box);
  });

  test("on a box: setting a password ends the user's sessions and tokens", async () => {
    const mia = await service.users.create({ name: "mia", role: "member", password: "correct horse battery" });
    const { credential, secret } = await service.credentials.create(mia, { kind: "service", label: "robot" });
    const { cookie } = await service.sessions.start(mia);
    const { access_token } = await service.clientCredentials({
      client: { clientId: credential.clientId, secret },
      scope: "platform-api",
      address: "127.0.0.1",
    });
    const me = () =>
      fetch(`${service.issuer}/management/v1/me`, { headers: { authorization: `Bearer ${access_token}` } });
    expect((await me()).status).toBe(200);
    const typed = vi
      .spyOn(process, "stdin", "get")
      .mockReturnValue(Readable.from([Buffer.from("another password")]) as never);
    await run("user", "change", "mia", "--password-stdin", ...box).finally(() => typed.mockRestore());
    expect(await service.users.authenticate("mia", "another password")).not.toBeNull();
    expect((await me()).status).toBe(401);
    expect(await service.sessions.find(cookie)).toBeNull();
    await service.deleteUser("mia");
  });

  test("on a box: users, keys", async () => {
    await run("user", "create", "mia", ...box);
    expect(await run("user", "change", "mia", "--role", "owner", "--disable", ...box)).toContain(
      "mia: owner, disabled",
    );
    expect(await run("user", "list", ...box)).toContain("mia");
    await run("user", "delete", "mia", ...box);
    expect(
      await json("user", "credential", "more", "--redirect", "https://app.example/callback", ...box),
    ).toMatchObject({ clientId: expect.stringMatching(/^platform-/) });
    expect(await run("keys", "rotate", ...box)).toContain("signs from");
    expect((await json("keys", "list", ...box)).length).toBe(2);
  });

  test("on a box: registrations, agents and hours", async () => {
    const { clientId, clientSecret } = await json("register", "Shop", "--site", "306", "--site", "307", ...box);
    expect(await service.registrations.authenticate(clientId, clientSecret)).toMatchObject({ sites: ["306", "307"] });
    await run("agent", "set", "306", "19001", "ann", "--state", "online", "--group", "sales", ...box);
    expect(await service.agents.availability("306", 19001, "sales")).toEqual({
      availability: true,
      inHOP: true,
      status: "online",
    });
    await run(
      "hours",
      "set",
      "306",
      "19001",
      "--time-zone",
      "Europe/Berlin",
      "--open",
      "mon-fri 09:00-17:30",
      "--open",
      "sun 10:00-12:00",
      "--closed",
      "2026-12-25",
      ...box,
    );
    const [unit] = await json("agent", "list", ...box);
    expect(unit.hours).toEqual({
      timeZone: "Europe/Berlin",
      weekly: Object.fromEntries([
        ...["mon", "tue", "wed", "thu", "fri"].map((day) => [day, [["09:00", "17:30"]]]),
        ["sun", [["10:00", "12:00"]]],
      ]),
      exceptions: { "2026-12-25": [] },
    });
    expect(await run("agent", "list", ...box)).toContain("mon 09:00-17:30");
    await expect(run("hours", "set", "306", "1", "--time-zone", "UTC", "--open", "always", ...box)).rejects.toThrow(
      "hours must be days and times",
    );
    await run("hours", "clear", "306", "19001", ...box);
    await run("agent", "remove", "306", "19001", "ann", ...box);
    expect(await run("lock", clientId, ...box)).toContain(`locked ${clientId}`);
    const again = await json("reregister", clientId, ...box);
    expect(again.clientId).not.toBe(clientId);
    expect(await run("registrations", ...box)).toMatch(/locked[\s\S]*active/);
  });

  test("params, and helpful errors", async () => {
    expect(JSON.parse(await run("params", "asr", "bank", "eng-USA"))).toEqual({
      urn: "urn:vendor-platform:tag:model/bank/platform.asr?=language=eng-USA",
      language: "eng-USA",
    });
    await expect(run("params", "asr", "bank")).rejects.toThrow("asr_params must have a language");
    // Wrong usage exits with 2, here and on a box, and so does a name that does not exist or is taken.
    await expect(run("app", "create", "", ...box)).rejects.toMatchObject({ exitCode: 2 });
    await expect(run("app", "create", "Bank", "--oauth-scope", "nope", ...box)).rejects.toMatchObject({
      message: "unknown runtime scope: nope",
      exitCode: 2,
    });
    await expect(run("user", "delete", "nobody", ...box)).rejects.toMatchObject({ exitCode: 2 });
    await expect(run("app", "delete", "nowhere", ...box)).rejects.toMatchObject({ exitCode: 2 });
    await expect(run("user", "change", "olga", ...box)).rejects.toMatchObject({
      message: "nothing to change: give --role, --password-stdin, --disable or --enable",
      exitCode: 2,
    });
    await expect(run("params", "tts", "bank")).rejects.toThrow("must be asr, nlu or dlg");
    await expect(run("app", "list", "--url", box[1]!)).rejects.toThrow("requires an access token");
    await expect(run("app", "list", ...box.slice(0, 5), "wrong")).rejects.toMatchObject({
      message: expect.stringContaining("the client is unknown or its secret is wrong"),
      exitCode: 4,
    });
  });
});
