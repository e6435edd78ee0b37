import { Command, Option } from "commander";
import { isLoopback, loadConfig } from "../server/config.js";
import { openConfiguredStore } from "../server/open-store.js";
import { StoreError } from "../store/errors.js";
import { SERVICES } from "../token/applications.js";
import {
  administerService,
  createManagementClient,
  createTokenCache,
  createTokenService,
  DAYS,
  type Day,
  type Hours,
  OAuthError,
  PLATFORM_SCOPE,
  parseClientId,
  type Role,
  systemRandom,
  type TokenAdministration,
  TokenRequestError,
  UrnError,
  type Window,
  writeConfig,
  writeParams,
} from "../token/index.js";
import { generatePassword } from "../token/users.js";
import { CommandError } from "./command-error.js";
import { ExitCode } from "./exit-code.js";
import { createOutput, facts, type Output, table } from "./output.js";
import { readStandardInput } from "./standard-input.js";

interface Place {
  readonly url?: string;
  readonly token?: string;
  readonly clientId?: string;
  readonly clientSecret?: string;
  readonly store?: string;
  readonly config?: string;
  readonly json?: boolean;
}

/** Every administrative command works on a running box (`--url`) or on a store that no box has open. */
const place = (command: Command): Command =>
  command
    .addOption(
      new Option("--url <url>", "address of a running box, used over its management interface").env("VIVAVOCE_URL"),
    )
    .addOption(new Option("--token <token>", "platform-api access token for the box").env("VIVAVOCE_TOKEN"))
    .addOption(
      new Option("--client-id <id>", "client id of a profile credential, to get a token").env("VIVAVOCE_CLIENT_ID"),
    )
    .addOption(new Option("--client-secret <secret>", "secret of the profile credential").env("VIVAVOCE_CLIENT_SECRET"))
    .addOption(
      new Option("--store <store>", "store to work on: a folder (no box may have it open), or postgres://…").env(
        "VIVAVOCE_STORE",
      ),
    )
    .option("--config <file>", "configuration file of the box")
    .option("--json", "print the answer as JSON");

function authorizationFor(options: Place & { readonly url: string }): () => Promise<string> {
  if (options.token !== undefined) return async () => `Bearer ${options.token}`;
  if (options.clientId === undefined || options.clientSecret === undefined) {
    throw new CommandError(
      "the server requires an access token",
      "give --token, or --client-id and --client-secret of a service account from the profile page",
    );
  }
  const tokenUrl = `${options.url.replace(/\/$/, "")}/oauth2/token`;
  const cache = createTokenCache({
    tokenUrl,
    clientId: options.clientId,
    clientSecret: options.clientSecret,
    scope: PLATFORM_SCOPE,
  });
  return () => cache.authorization();
}

async function withAdministration(
  options: Place,
  work: (administration: TokenAdministration, output: Output) => Promise<void>,
): Promise<void> {
  const output = createOutput(options.json ?? false);
  try {
    if (options.url !== undefined) {
      await work(
        createManagementClient({ url: options.url, authorization: authorizationFor({ ...options, url: options.url }) }),
        output,
      );
      return;
    }
    const config = loadConfig({
      flags: { store: options.store },
      ...(options.config !== undefined && { file: options.config }),
    });
    const store = await openConfiguredStore(config);
    try {
      await work(
        administerService(createTokenService({ documents: store.documents, issuer: issuerOf(config) })),
        output,
      );
    } finally {
      await store.close();
    }
  } catch (error) {
    if (error instanceof OAuthError) throw new CommandError(error.message, undefined, ExitCode.failed);
    if (error instanceof TokenRequestError) throw new CommandError(error.message, undefined, ExitCode.failed);
    if (error instanceof StoreError && error.code === "locked") {
      throw new CommandError(
        "this store is open in a running box",
        "use the box with --url and a credential from an owner's profile page",
      );
    }
    if (error instanceof UrnError) throw new CommandError(error.message);
    throw error;
  }
}

function issuerOf(config: ReturnType<typeof loadConfig>): string {
  if (config.publicUrl !== undefined) return new URL(config.publicUrl).origin;
  const host = isLoopback(config.host) || config.host === "0.0.0.0" ? "127.0.0.1" : config.host;
  return new URL(`${config.tls ? "https" : "http"}://${host}:${config.port}`).origin;
}

const several = (value: string, before: string[] = []): string[] => [...before, value];

function applicationOf(clientId: string): string {
  const parts = parseClientId(clientId.replaceAll(/%3a/gi, ":"));
  if (!parts)
    throw new CommandError(
      `malformed client id: ${clientId}`,
      "a client id has the form appID:<id>:geo:<geography>:clientName:<name>",
    );
  return parts.applicationId;
}

const rawClientId = (clientId: string): string => clientId.replaceAll(/%3a/gi, ":");

function businessUnit(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new CommandError(`a business unit must be a number, got ${text}`);
  return Number(text);
}

const SHOWN_ONCE = "save the secret now: it is not shown again";

function applicationCommands(): Command {
  const app = new Command("app").description("manage applications, each with an id for every environment");
  place(
    app
      .command("create")
      .description("create an application with its default client, and show the client's secret")
      .argument("<name>"),
  )
    .option("--environment <name>", "environment of the application", "production")
    .option("--geo <geography>", "geography of its first client", "local")
    .option("--oauth-scope <scope>", "allow only this scope (repeat for more)", several)
    .option("--gk-scope <id>", "biometric scope of the default client (repeat for more)", several)
    .action(
      (
        name: string,
        options: Place & { environment: string; geo: string; oauthScope?: string[]; gkScope?: string[] },
      ) =>
        withAdministration(options, async ({ applications }, output) => {
          const application = await applications.create({
            name,
            environment: options.environment,
            geography: options.geo,
            ...(options.oauthScope && { scopes: options.oauthScope }),
            gkScopes: options.gkScope ?? [],
          });
          const clientId = application.clients[0]!.id;
          const clientSecret = await applications.regenerateSecret(application.id, clientId);
          output.answer({ applicationId: application.id, clientId, clientSecret }, () =>
            facts([
              ["application", application.id],
              ["client id", clientId],
              ["client secret", clientSecret],
            ]),
          );
          output.note(SHOWN_ONCE);
        }),
    );
  place(app.command("list").description("list all applications and their clients")).action((options: Place) =>
    withAdministration(options, async ({ applications }, output) => {
      const all = await applications.list();
      output.answer(all, () =>
        table(
          ["application", "environment", "client id", "biometric scopes", "secret"],
          all.flatMap(({ name, environment, clients }) =>
            clients.map((client) => [
              name,
              environment,
              client.id,
              client.gkScopes.join(" "),
              client.hasSecret ? "yes" : "no",
            ]),
          ),
        ),
      );
    }),
  );
  place(
    app
      .command("rename")
      .description("rename an application; its ids and secrets stay the same")
      .argument("<application-id>")
      .argument("<name>"),
  ).action((id: string, name: string, options: Place) =>
    withAdministration(options, async ({ applications }, output) => {
      const renamed = await applications.rename(id, { name });
      output.answer({ applicationId: id, name: renamed.name }, () => `renamed to ${renamed.name}`);
    }),
  );
  place(
    app.command("delete").description("delete an application with all its clients").argument("<application-id>"),
  ).action((id: string, options: Place) =>
    withAdministration(options, async ({ applications }, output) => {
      await applications.delete(id);
      output.answer({ deleted: id }, () => `deleted ${id}`);
    }),
  );
  place(
    app
      .command("config")
      .description("print config.json, with a block for each client of a geography")
      .argument("<application-id>"),
  )
    .option("--geo <geography>", "geography", "local")
    .action((id: string, options: Place & { geo: string }) =>
      withAdministration(options, async ({ config }) => {
        process.stdout.write(writeConfig(await config(id, options.geo)));
      }),
    );
  place(
    app
      .command("geo")
      .description("set a geography's scopes and service addresses")
      .argument("<application-id>")
      .argument("<geography>"),
  )
    .option("--oauth-scope <scope>", "allow only this scope (repeat for more)", several)
    .option("--oauth-server-url <url>", "token endpoint")
    .option("--asr <host:port>", "recognition service")
    .option("--nlu <host:port>", "interpretation service")
    .option("--tts <host:port>", "synthesis service")
    .option("--dlg <host:port>", "dialog service")
    .option("--bio <host:port>", "voiceprint service")
    .action(
      (
        id: string,
        geography: string,
        options: Place & { oauthScope?: string[]; oauthServerUrl?: string } & Partial<
            Record<(typeof SERVICES)[number], string>
          >,
      ) =>
        withAdministration(options, async ({ applications }, output) => {
          const named = SERVICES.flatMap((service) => (options[service] ? [[service, options[service]]] : []));
          const application = await applications.putGeography(id, geography, {
            ...(options.oauthScope && { scopes: options.oauthScope }),
            ...(options.oauthServerUrl && { oauthServerUrl: options.oauthServerUrl }),
            endpoints: Object.fromEntries(named),
          });
          output.answer(application, () => JSON.stringify(application.geographies[geography], null, 2));
        }),
    );
  return app;
}

function clientCommands(): Command {
  const client = new Command("client").description("manage the clients of an application");
  place(
    client
      .command("create")
      .description("add a client to an application, and show its secret")
      .argument("<application-id>")
      .argument("<name>"),
  )
    .option("--geo <geography>", "geography; the application's first by default")
    .option("--gk-scope <id>", "biometric scope of the client (repeat for more)", several)
    .action((id: string, name: string, options: Place & { geo?: string; gkScope?: string[] }) =>
      withAdministration(options, async ({ applications }, output) => {
        const created = await applications.createClient(id, {
          name,
          ...(options.geo !== undefined && { geography: options.geo }),
          gkScopes: options.gkScope ?? [],
        });
        await showSecret(output, created.id, await applications.regenerateSecret(id, created.id));
      }),
    );
  place(
    client.command("secret").description("create a new secret; the old one stops working").argument("<client-id>"),
  ).action((clientId: string, options: Place) =>
    withAdministration(options, async ({ applications }, output) => {
      const id = rawClientId(clientId);
      await showSecret(output, id, await applications.regenerateSecret(applicationOf(id), id));
    }),
  );
  place(
    client
      .command("bind")
      .description("set the biometric scopes of a client's tokens (none given: none)")
      .argument("<client-id>")
      .argument("[gk-scopes...]"),
  ).action((clientId: string, gkScopes: string[], options: Place) =>
    withAdministration(options, async ({ applications }, output) => {
      const bound = await applications.bindScopes(applicationOf(clientId), rawClientId(clientId), gkScopes);
      output.answer(bound, () => `${bound.id} has access to ${bound.gkScopes.join(" ") || "no biometric scope"}`);
    }),
  );
  place(
    client
      .command("delete")
      .description("delete a client; the last client of an application cannot be deleted")
      .argument("<client-id>"),
  ).action((clientId: string, options: Place) =>
    withAdministration(options, async ({ applications }, output) => {
      await applications.deleteClient(applicationOf(clientId), rawClientId(clientId));
      output.answer({ deleted: clientId }, () => `deleted ${clientId}`);
    }),
  );
  return client;
}

async function showSecret(output: Output, clientId: string, clientSecret: string): Promise<void> {
  output.answer({ clientId, clientSecret }, () =>
    facts([
      ["client id", clientId],
      ["client secret", clientSecret],
    ]),
  );
  output.note(SHOWN_ONCE);
}

const roleOption = (): Option =>
  new Option("--role <role>", "an owner manages everything, a member only their own credentials").choices([
    "owner",
    "member",
  ]);

function userCommands(): Command {
  const user = new Command("user").description("manage users who can sign in");
  place(
    user
      .command("create")
      .description("create a user; without --password-stdin, a password is generated and shown")
      .argument("<name>"),
  )
    .addOption(roleOption().default("member"))
    .option("--password-stdin", "read the password from standard input")
    .action((name: string, options: Place & { role: Role; passwordStdin?: boolean }) =>
      withAdministration(options, async ({ users }, output) => {
        const password = options.passwordStdin ? await readStandardInput() : generatePassword(systemRandom);
        const created = await users.create({ name, role: options.role, password });
        output.answer({ ...created, ...(!options.passwordStdin && { password }) }, () =>
          facts([
            ["user", created.name],
            ["role", created.role],
            ...(options.passwordStdin ? [] : ([["password", password]] as const)),
          ]),
        );
      }),
    );
  place(user.command("list").description("list all users")).action((options: Place) =>
    withAdministration(options, async ({ users }, output) => {
      const all = await users.list();
      output.answer(all, () =>
        table(
          ["name", "role", "state"],
          all.map(({ name, role, disabled }) => [name, role, disabled ? "disabled" : "active"]),
        ),
      );
    }),
  );
  place(user.command("change").description("change a user's role, password or state").argument("<name>"))
    .addOption(roleOption())
    .option("--password-stdin", "read a new password from standard input")
    .option("--disable", "refuse sign-in, tokens and credentials")
    .option("--enable", "allow them again")
    .action(
      (name: string, options: Place & { role?: Role; passwordStdin?: boolean; disable?: boolean; enable?: boolean }) =>
        withAdministration(options, async ({ users }, output) => {
          if (options.disable && options.enable) throw new CommandError("give either --disable or --enable, not both");
          const changed = await users.change(name, {
            ...(options.role && { role: options.role }),
            ...((options.disable || options.enable) && { disabled: options.disable === true }),
            ...(options.passwordStdin && { password: await readStandardInput() }),
          });
          output.answer(changed, () => `${changed.name}: ${changed.role}, ${changed.disabled ? "disabled" : "active"}`);
        }),
    );
  place(user.command("delete").description("delete a user and all their credentials").argument("<name>")).action(
    (name: string, options: Place) =>
      withAdministration(options, async ({ deleteUser }, output) => {
        await deleteUser(name);
        output.answer({ deleted: name }, () => `deleted ${name}`);
      }),
  );
  place(
    user
      .command("credential")
      .description("create a credential, as on the profile page: a service account or, with --redirect, a user account")
      .argument("<label>"),
  )
    .option("--user <name>", "user who gets it; with --url always the user of the token")
    .option("--redirect <uri>", "redirect address of a user account (repeat for more)", several)
    .action((label: string, options: Place & { user?: string; redirect?: string[] }) =>
      withAdministration(options, async ({ createCredential }, output) => {
        if (options.url === undefined && options.user === undefined)
          throw new CommandError("the user is missing", "pass --user NAME");
        const { credential, secret } = await createCredential(options.user, {
          kind: options.redirect ? "user" : "service",
          label,
          ...(options.redirect && { redirectUris: options.redirect }),
        });
        await showSecret(output, credential.clientId, secret);
      }),
    );
  return user;
}

function registrationCommands(token: Command): void {
  place(
    token
      .command("register")
      .description("register an application for the engagement API, and show its secret")
      .argument("<name>"),
  )
    .requiredOption("--site <id>", "site that its tokens give access to (repeat for more)", several)
    .option("--scope <scope>", "scope of its tokens (repeat for more)", several)
    .action((name: string, options: Place & { site: string[]; scope?: string[] }) =>
      withAdministration(options, async ({ registrations }, output) => {
        const { registration, secret } = await registrations.register({
          name,
          sites: options.site,
          ...(options.scope && { scopes: options.scope }),
        });
        await showSecret(output, registration.clientId, secret);
      }),
    );
  place(token.command("registrations").description("list the registrations for the engagement API")).action(
    (options: Place) =>
      withAdministration(options, async ({ registrations }, output) => {
        const all = await registrations.list();
        output.answer(all, () =>
          table(
            ["client id", "name", "sites", "scopes", "state"],
            all.map(({ clientId, name, sites, scopes, lockedAt }) => [
              clientId,
              name,
              sites.join(" "),
              scopes.join(" "),
              lockedAt === null ? "active" : "locked",
            ]),
          ),
        );
      }),
  );
  place(
    token
      .command("lock")
      .description("lock a compromised registration: it gets no more tokens, and its issued tokens are refused at once")
      .argument("<client-id>"),
  ).action((clientId: string, options: Place) =>
    withAdministration(options, async ({ registrations }, output) => {
      const locked = await registrations.lock(clientId);
      output.answer(locked, () => `locked ${locked.clientId}`);
    }),
  );
  place(
    token
      .command("reregister")
      .description("lock a registration and give its application a new client id and secret")
      .argument("<client-id>"),
  ).action((clientId: string, options: Place) =>
    withAdministration(options, async ({ registrations }, output) => {
      const { registration, secret } = await registrations.reregister(clientId);
      await showSecret(output, registration.clientId, secret);
    }),
  );
}

function agentCommands(): Command {
  const agent = new Command("agent").description("manage the agents of a site's business units");
  place(
    agent
      .command("set")
      .description("add an agent, or change one")
      .argument("<site>")
      .argument("<business-unit>")
      .argument("<agent>"),
  )
    .addOption(new Option("--state <state>", "current state of the agent").choices(["online", "busy", "offline"]))
    .option("--group <id>", "agent group (repeat for more)", several)
    .action(
      (
        site: string,
        unit: string,
        id: string,
        options: Place & { state?: "online" | "busy" | "offline"; group?: string[] },
      ) =>
        withAdministration(options, async ({ agents }, output) => {
          const changed = await agents.put(site, businessUnit(unit), {
            id,
            ...(options.state && { state: options.state }),
            ...(options.group && { groups: options.group }),
          });
          output.answer(changed, () =>
            table(
              ["agent", "state", "groups"],
              changed.agents.map(({ id: name, state, groups }) => [name, state, groups.join(" ")]),
            ),
          );
        }),
    );
  place(
    agent
      .command("remove")
      .description("remove an agent")
      .argument("<site>")
      .argument("<business-unit>")
      .argument("<agent>"),
  ).action((site: string, unit: string, id: string, options: Place) =>
    withAdministration(options, async ({ agents }, output) => {
      const changed = await agents.remove(site, businessUnit(unit), id);
      output.answer(changed, () => `removed ${id}`);
    }),
  );
  place(agent.command("list").description("list all business units with their agents and hours")).action(
    (options: Place) =>
      withAdministration(options, async ({ agents }, output) => {
        const all = await agents.list();
        output.answer(all, () =>
          table(
            ["site", "business unit", "agent", "state", "groups", "hours"],
            all.flatMap(({ siteId, businessUnitId, agents: those, hours }) =>
              (those.length ? those : [{ id: "–", state: "–", groups: [] }]).map(({ id, state, groups }) => [
                siteId,
                businessUnitId,
                id,
                state,
                groups.join(" "),
                describeHours(hours),
              ]),
            ),
          ),
        );
      }),
  );
  return agent;
}

const describeHours = (hours: Hours | null): string =>
  hours === null
    ? "always"
    : `${Object.entries(hours.weekly)
        .map(([day, windows]) => `${day} ${(windows ?? []).map((window) => window.join("-")).join(",")}`)
        .join("; ")} ${hours.timeZone}`;

/** `mon-fri 09:00-17:30`, `sat 10:00-14:00`, `sun 22:00-02:00`. */
function parseOpening(text: string): { days: Day[]; window: Window } {
  const week: readonly Day[] = [...DAYS.slice(1), DAYS[0]];
  const match = /^([a-z]{3})(?:-([a-z]{3}))? (\d\d:\d\d)-(\d\d:\d\d)$/.exec(text.trim().toLowerCase());
  const from = week.indexOf(match?.[1] as Day);
  const to = match?.[2] === undefined ? from : week.indexOf(match[2] as Day);
  if (!match || from < 0 || to < from)
    throw new CommandError(
      `hours must be days and times, got "${text}"`,
      'write "mon-fri 09:00-17:30" or "sat 10:00-14:00"',
    );
  return { days: week.slice(from, to + 1), window: [match[3] as string, match[4] as string] };
}

function hoursCommands(): Command {
  const hours = new Command("hours").description("manage the hours of operation of a business unit");
  place(
    hours
      .command("set")
      .description('set the hours, for example --open "mon-fri 09:00-17:30" --open "sat 10:00-14:00"')
      .argument("<site>")
      .argument("<business-unit>"),
  )
    .requiredOption("--time-zone <name>", "IANA name, such as Europe/Berlin")
    .requiredOption("--open <hours>", "days and times (repeat for more)", several)
    .option("--closed <date>", "closed on this day, such as 2026-12-25 (repeat for more)", several)
    .action((site: string, unit: string, options: Place & { timeZone: string; open: string[]; closed?: string[] }) =>
      withAdministration(options, async ({ agents }, output) => {
        const weekly: Partial<Record<Day, Window[]>> = {};
        for (const { days, window } of options.open.map(parseOpening))
          for (const day of days) weekly[day] = [...(weekly[day] ?? []), window];
        const exceptions = Object.fromEntries((options.closed ?? []).map((date) => [date, []]));
        const changed = await agents.setHours(site, businessUnit(unit), {
          timeZone: options.timeZone,
          weekly,
          exceptions,
        });
        output.answer(changed, () => describeHours(changed.hours));
      }),
    );
  place(
    hours.command("clear").description("remove the hours: always open").argument("<site>").argument("<business-unit>"),
  ).action((site: string, unit: string, options: Place) =>
    withAdministration(options, async ({ agents }, output) => {
      const changed = await agents.setHours(site, businessUnit(unit), null);
      output.answer(changed, () => describeHours(changed.hours));
    }),
  );
  return hours;
}

function keyCommands(): Command {
  const keys = new Command("keys").description("manage the keys that sign tokens");
  place(keys.command("list").description("list the keys of all tokens that may still be valid")).action(
    (options: Place) =>
      withAdministration(options, async ({ keyring }, output) => {
        const all = await keyring.list();
        const day = (at: number | null): string => (at === null ? "–" : new Date(at).toISOString());
        output.answer(all, () =>
          table(
            ["key", "algorithm", "signs from", "published until"],
            all.map((key) => [key.kid, key.algorithm, day(key.signsFrom), day(key.publishedUntil)]),
          ),
        );
      }),
  );
  place(keys.command("rotate").description("start using a new key; issued tokens stay valid"))
    .option("--revoke", "refuse all tokens of the old key now, because it leaked")
    .action((options: Place & { revoke?: boolean }) =>
      withAdministration(options, async ({ keyring }, output) => {
        const next = await keyring.rotate({ revoke: options.revoke ?? false });
        output.answer(next, () => `${next.kid} signs from ${new Date(next.signsFrom).toISOString()}`);
      }),
    );
  return keys;
}

function paramsCommand(): Command {
  return new Command("params")
    .description("print asr_params, nlu_params or dlg_params for a context tag")
    .argument("<kind>", "asr, nlu or dlg")
    .argument("<context-tag>")
    .argument("[language]", "such as eng-USA; not for dlg")
    .option("--json", "print JSON (this command always does)")
    .action((kind: string, contextTag: string, language: string | undefined) => {
      if (kind !== "asr" && kind !== "nlu" && kind !== "dlg")
        throw new CommandError(`the kind must be asr, nlu or dlg, got ${kind}`);
      try {
        process.stdout.write(`${JSON.stringify(writeParams(`${kind}_params`, contextTag, language), null, 2)}\n`);
      } catch (error) {
        throw new CommandError(error instanceof Error ? error.message : String(error));
      }
    });
}

/** `vivavoce token …`: applications, clients, users, registrations, agents, hours and keys. */
export function tokenCommand(): Command {
  const token = new Command("token").description("manage applications, clients, users and their tokens");
  for (const command of [
    applicationCommands(),
    clientCommands(),
    userCommands(),
    agentCommands(),
    hoursCommands(),
    keyCommands(),
    paramsCommand(),
  ])
    token.addCommand(command);
  registrationCommands(token);
  return token;
}
