import { type Command, Option } from "commander";
import { loadConfig, ownUrl } from "../server/config.js";
import { openConfiguredStore } from "../server/open-store.js";
import { StoreError } from "../store/errors.js";
import { SERVICES } from "../token/applications.js";
import {
  AGENT_STATES,
  type AgentState,
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
import { boxAddress, unreachable } from "./box-address.js";
import { CommandError } from "./command-error.js";
import { ExitCode } from "./exit-code.js";
import { createOutput, facts, type Output, table } from "./output.js";
import type { PlaceOptions } from "./shared-options.js";
import { readStandardInput } from "./standard-input.js";

interface Place extends Omit<PlaceOptions, "scope" | "configset"> {
  readonly config?: string;
}

/** Every administrative command works on a running box (`--url`) or on a store that no box has open. */
const place = (command: Command): Command =>
  command
    .addOption(
      new Option("--url <url>", "work on the running box at this address, through its management interface").env(
        "VIVAVOCE_URL",
      ),
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
    .option("--json", "print the result as JSON");

function authorizationFor(options: Place & { readonly url: string }): () => Promise<string> {
  if (options.token !== undefined) return async () => `Bearer ${options.token}`;
  if (options.clientId === undefined || options.clientSecret === undefined) {
    throw new CommandError(
      "the server requires an access token",
      "give --token, or --client-id and --client-secret of a service account from the profile page",
    );
  }
  const tokenUrl = `${options.url}/oauth2/token`;
  const cache = createTokenCache({
    tokenUrl,
    clientId: options.clientId,
    clientSecret: options.clientSecret,
    scope: PLATFORM_SCOPE,
  });
  return () => cache.authorization();
}

/** A value that cannot be used, a name that does not exist, a name that is taken. */
const WRONG_USAGE: ReadonlySet<number> = new Set([400, 404, 409]);

async function withAdministration(
  options: Place,
  work: (administration: TokenAdministration, output: Output) => Promise<void>,
): Promise<void> {
  const output = createOutput(options.json ?? false);
  try {
    if (options.url !== undefined) {
      const url = boxAddress(options.url);
      await work(
        createManagementClient({
          url,
          authorization: authorizationFor({ ...options, url }),
          fetch: (...request) => fetch(...request).catch((error: unknown) => Promise.reject(unreachable(url, error))),
        }),
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
      await work(administerService(createTokenService({ documents: store.documents, issuer: ownUrl(config) })), output);
    } finally {
      await store.close();
    }
  } catch (error) {
    if (error instanceof OAuthError)
      throw new CommandError(
        error.message,
        undefined,
        WRONG_USAGE.has(error.status) ? ExitCode.usage : ExitCode.failed,
      );
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

type Call<Options> = TokenAdministration & { readonly output: Output; readonly options: Place & Options };

/** Adds a command; `usage` is its name and arguments. Options of its own are added to what is returned. */
const subcommand = <Options, Given extends readonly (string | string[])[]>(
  parent: Command,
  usage: string,
  description: string,
  work: (call: Call<Options>, ...given: Given) => Promise<void>,
): Command =>
  place(parent.command(usage).description(description)).action((...all: unknown[]) => {
    const [options] = all.splice(-2) as [Place & Options, Command];
    return withAdministration(options, (administration, output) =>
      work({ ...administration, output, options }, ...(all as unknown as Given)),
    );
  });

const several = (value: string, before: string[] = []): string[] => [...before, value];

const rawClientId = (clientId: string): string => clientId.replaceAll(/%3a/gi, ":");

function applicationOf(clientId: string): string {
  const parts = parseClientId(rawClientId(clientId));
  if (!parts)
    throw new CommandError(
      `malformed client id: ${clientId}`,
      "a client id has the form appID:<id>:geo:<geography>:clientName:<name>",
    );
  return parts.applicationId;
}

function businessUnit(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new CommandError(`a business unit must be a number, got ${text}`);
  return Number(text);
}

function showSecret(output: Output, clientId: string, clientSecret: string, applicationId?: string): void {
  output.answer({ applicationId, clientId, clientSecret }, () =>
    facts([
      ...(applicationId === undefined ? [] : [["application", applicationId] as const]),
      ["client id", clientId],
      ["client secret", clientSecret],
    ]),
  );
  output.note("save the secret now: it is not shown again");
}

type NewApplicationOptions = { environment: string; geo: string; oauthScope?: string[]; gkScope?: string[] };

type GeographyOptions = { oauthScope?: string[]; oauthServerUrl?: string } & Partial<
  Record<(typeof SERVICES)[number], string>
>;

function applicationCommands(token: Command): void {
  const app = token.command("app").description("manage applications, each with an id for every environment");
  subcommand(
    app,
    "create <name>",
    "create an application with its default client, and show the client's secret",
    async ({ applications, output, options }: Call<NewApplicationOptions>, name: string) => {
      const { id, clients } = await applications.create({
        name,
        environment: options.environment,
        geography: options.geo,
        ...(options.oauthScope && { scopes: options.oauthScope }),
        gkScopes: options.gkScope ?? [],
      });
      const clientId = clients[0]!.id;
      showSecret(output, clientId, await applications.regenerateSecret(id, clientId), id);
    },
  )
    .option("--environment <name>", "environment of the application", "production")
    .option("--geo <geography>", "geography of its first client", "local")
    .option("--oauth-scope <scope>", "allow only this scope (repeat for more)", several)
    .option("--gk-scope <id>", "biometric scope of the default client (repeat for more)", several);
  subcommand(app, "list", "list all applications and their clients", async ({ applications, output }) => {
    const all = await applications.list();
    const rows = all.flatMap(({ name, environment, clients }) =>
      clients.map(({ id, gkScopes, hasSecret }) => [
        name,
        environment,
        id,
        gkScopes.join(" "),
        hasSecret ? "yes" : "no",
      ]),
    );
    output.answer(all, () => table(["application", "environment", "client id", "biometric scopes", "secret"], rows));
  });
  subcommand(
    app,
    "rename <application-id> <name>",
    "rename an application; its ids and secrets stay the same",
    async ({ applications, output }, id: string, name: string) => {
      const renamed = await applications.rename(id, { name });
      output.answer({ applicationId: id, name: renamed.name }, () => `renamed to ${renamed.name}`);
    },
  );
  subcommand(
    app,
    "delete <application-id>",
    "delete an application with all its clients",
    async ({ applications, output }, id: string) => {
      await applications.delete(id);
      output.answer({ deleted: id }, () => `deleted ${id}`);
    },
  );
  subcommand(
    app,
    "config <application-id>",
    "print config.json, with a block for each client of a geography",
    async ({ config, options }: Call<{ geo: string }>, id: string) => {
      process.stdout.write(writeConfig(await config(id, options.geo)));
    },
  ).option("--geo <geography>", "geography", "local");
  subcommand(
    app,
    "geo <application-id> <geography>",
    "set a geography's scopes and service addresses",
    async ({ applications, output, options }: Call<GeographyOptions>, id: string, geography: string) => {
      const named = SERVICES.flatMap((service) => (options[service] ? [[service, options[service]]] : []));
      const application = await applications.putGeography(id, geography, {
        ...(options.oauthScope && { scopes: options.oauthScope }),
        ...(options.oauthServerUrl && { oauthServerUrl: options.oauthServerUrl }),
        endpoints: Object.fromEntries(named),
      });
      output.answer(application, () => JSON.stringify(application.geographies[geography], null, 2));
    },
  )
    .option("--oauth-scope <scope>", "allow only this scope (repeat for more)", several)
    .option("--oauth-server-url <url>", "address of the token endpoint")
    .option("--asr <host:port>", "address of the recognition service")
    .option("--nlu <host:port>", "address of the interpretation service")
    .option("--tts <host:port>", "address of the synthesis service")
    .option("--dlg <host:port>", "address of the dialog service")
    .option("--bio <host:port>", "address of the voiceprint service");
}

function clientCommands(token: Command): void {
  const client = token.command("client").description("manage the clients of an application");
  subcommand(
    client,
    "create <application-id> <name>",
    "add a client to an application, and show its secret",
    async (
      { applications, output, options }: Call<{ geo?: string; gkScope?: string[] }>,
      applicationId: string,
      name: string,
    ) => {
      const { id } = await applications.createClient(applicationId, {
        name,
        ...(options.geo !== undefined && { geography: options.geo }),
        gkScopes: options.gkScope ?? [],
      });
      showSecret(output, id, await applications.regenerateSecret(applicationId, id));
    },
  )
    .option("--geo <geography>", "geography; the application's first by default")
    .option("--gk-scope <id>", "biometric scope of the client (repeat for more)", several);
  subcommand(
    client,
    "secret <client-id>",
    "create a new secret; the old one stops working",
    async ({ applications, output }, clientId: string) => {
      const id = rawClientId(clientId);
      showSecret(output, id, await applications.regenerateSecret(applicationOf(id), id));
    },
  );
  subcommand(
    client,
    "bind <client-id> [gk-scopes...]",
    "set the biometric scopes that a client's tokens give access to; give none to remove all",
    async ({ applications, output }, clientId: string, gkScopes: string[]) => {
      const bound = await applications.bindScopes(applicationOf(clientId), rawClientId(clientId), gkScopes);
      output.answer(bound, () => `${bound.id} has access to ${bound.gkScopes.join(" ") || "no biometric scope"}`);
    },
  );
  subcommand(
    client,
    "delete <client-id>",
    "delete a client; the last client of an application cannot be deleted",
    async ({ applications, output }, clientId: string) => {
      await applications.deleteClient(applicationOf(clientId), rawClientId(clientId));
      output.answer({ deleted: clientId }, () => `deleted ${clientId}`);
    },
  );
}

const roleOption = (): Option =>
  new Option("--role <role>", "an owner manages everything, a member only their own credentials").choices([
    "owner",
    "member",
  ]);

function userCommands(token: Command): void {
  const user = token.command("user").description("manage users who can sign in");
  subcommand(
    user,
    "create <name>",
    "create a user; without --password-stdin, a password is generated and shown",
    async ({ users, output, options }: Call<{ role: Role; passwordStdin?: boolean }>, name: string) => {
      const password = options.passwordStdin ? await readStandardInput() : generatePassword(systemRandom);
      const created = await users.create({ name, role: options.role, password });
      output.answer({ ...created, ...(!options.passwordStdin && { password }) }, () =>
        facts([
          ["user", created.name],
          ["role", created.role],
          ...(options.passwordStdin ? [] : ([["password", password]] as const)),
        ]),
      );
    },
  )
    .addOption(roleOption().default("member"))
    .option("--password-stdin", "read the password from standard input");
  subcommand(user, "list", "list all users", async ({ users, output }) => {
    const all = await users.list();
    const rows = all.map(({ name, role, disabled }) => [name, role, disabled ? "disabled" : "active"]);
    output.answer(all, () => table(["name", "role", "state"], rows));
  });
  subcommand(
    user,
    "change <name>",
    "change a user's role, password or state",
    async (
      { users, output, options }: Call<{ role?: Role; passwordStdin?: boolean; disable?: boolean; enable?: boolean }>,
      name: string,
    ) => {
      if (options.disable && options.enable) throw new CommandError("give either --disable or --enable, not both");
      if (!options.role && !options.passwordStdin && !options.disable && !options.enable)
        throw new CommandError("nothing to change: give --role, --password-stdin, --disable or --enable");
      const changed = await users.change(name, {
        ...(options.role && { role: options.role }),
        ...((options.disable || options.enable) && { disabled: options.disable === true }),
        ...(options.passwordStdin && { password: await readStandardInput() }),
      });
      output.answer(changed, () => `${changed.name}: ${changed.role}, ${changed.disabled ? "disabled" : "active"}`);
    },
  )
    .addOption(roleOption())
    .option("--password-stdin", "read a new password from standard input")
    .option("--disable", "refuse sign-in, tokens and credentials")
    .option("--enable", "allow them again");
  subcommand(
    user,
    "delete <name>",
    "delete a user and all their credentials",
    async ({ deleteUser, output }, name: string) => {
      await deleteUser(name);
      output.answer({ deleted: name }, () => `deleted ${name}`);
    },
  );
  subcommand(
    user,
    "credential <label>",
    "create a credential, as on the profile page: a service account or, with --redirect, a user account",
    async ({ createCredential, output, options }: Call<{ user?: string; redirect?: string[] }>, label: string) => {
      if (options.url === undefined && options.user === undefined)
        throw new CommandError("the user is missing", "pass --user NAME");
      const { credential, secret } = await createCredential(options.user, {
        kind: options.redirect ? "user" : "service",
        label,
        ...(options.redirect && { redirectUris: options.redirect }),
      });
      showSecret(output, credential.clientId, secret);
    },
  )
    .option("--user <name>", "user that the credential is for; with --url, always the user of the token")
    .option("--redirect <uri>", "redirect address of a user account (repeat for more)", several);
}

function registrationCommands(token: Command): void {
  subcommand(
    token,
    "register <name>",
    "register an application for the engagement API, and show its secret",
    async ({ registrations, output, options }: Call<{ site: string[]; scope?: string[] }>, name: string) => {
      const { registration, secret } = await registrations.register({
        name,
        sites: options.site,
        ...(options.scope && { scopes: options.scope }),
      });
      showSecret(output, registration.clientId, secret);
    },
  )
    .requiredOption("--site <id>", "site that its tokens give access to (repeat for more)", several)
    .option("--scope <scope>", "scope of its tokens (repeat for more)", several);
  subcommand(
    token,
    "registrations",
    "list the registrations for the engagement API",
    async ({ registrations, output }) => {
      const all = await registrations.list();
      const rows = all.map(({ clientId, name, sites, scopes, lockedAt }) => [
        clientId,
        name,
        sites.join(" "),
        scopes.join(" "),
        lockedAt === null ? "active" : "locked",
      ]);
      output.answer(all, () => table(["client id", "name", "sites", "scopes", "state"], rows));
    },
  );
  subcommand(
    token,
    "lock <client-id>",
    "lock a compromised registration: it gets no more tokens, and its issued tokens are refused at once",
    async ({ registrations, output }, clientId: string) => {
      const locked = await registrations.lock(clientId);
      output.answer(locked, () => `locked ${locked.clientId}`);
    },
  );
  subcommand(
    token,
    "reregister <client-id>",
    "lock a registration and give its application a new client id and secret",
    async ({ registrations, output }, clientId: string) => {
      const { registration, secret } = await registrations.reregister(clientId);
      showSecret(output, registration.clientId, secret);
    },
  );
}

function agentCommands(token: Command): void {
  const agent = token.command("agent").description("manage the agents of a site's business units");
  subcommand(
    agent,
    "set <site> <business-unit> <agent>",
    "add an agent, or change one",
    async (
      { agents, output, options }: Call<{ state?: AgentState; group?: string[] }>,
      site: string,
      unit: string,
      id: string,
    ) => {
      const changed = await agents.put(site, businessUnit(unit), {
        id,
        ...(options.state && { state: options.state }),
        ...(options.group && { groups: options.group }),
      });
      const rows = changed.agents.map(({ id: name, state, groups }) => [name, state, groups.join(" ")]);
      output.answer(changed, () => table(["agent", "state", "groups"], rows));
    },
  )
    .addOption(new Option("--state <state>", "current state of the agent").choices(AGENT_STATES))
    .option("--group <id>", "group that the agent belongs to (repeat for more)", several);
  subcommand(
    agent,
    "remove <site> <business-unit> <agent>",
    "remove an agent",
    async ({ agents, output }, site: string, unit: string, id: string) => {
      const changed = await agents.remove(site, businessUnit(unit), id);
      output.answer(changed, () => `removed ${id}`);
    },
  );
  subcommand(agent, "list", "list all business units with their agents and hours", async ({ agents, output }) => {
    const all = await agents.list();
    const rows = all.flatMap(({ siteId, businessUnitId, agents: those, hours }) =>
      (those.length ? those : [{ id: "–", state: "–", groups: [] }]).map(({ id, state, groups }) => [
        siteId,
        businessUnitId,
        id,
        state,
        groups.join(" "),
        describeHours(hours),
      ]),
    );
    output.answer(all, () => table(["site", "business unit", "agent", "state", "groups", "hours"], rows));
  });
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

function hoursCommands(token: Command): void {
  const hours = token.command("hours").description("manage the hours of operation of a business unit");
  subcommand(
    hours,
    "set <site> <business-unit>",
    'set the hours, for example --open "mon-fri 09:00-17:30" --open "sat 10:00-14:00"',
    async (
      { agents, output, options }: Call<{ timeZone: string; open: string[]; closed?: string[] }>,
      site: string,
      unit: string,
    ) => {
      const weekly: Partial<Record<Day, Window[]>> = {};
      for (const { days, window } of options.open.map(parseOpening))
        for (const day of days) weekly[day] = [...(weekly[day] ?? []), window];
      const exceptions = Object.fromEntries((options.closed ?? []).map((date) => [date, []]));
      const given = { timeZone: options.timeZone, weekly, exceptions };
      const changed = await agents.setHours(site, businessUnit(unit), given);
      output.answer(changed, () => describeHours(changed.hours));
    },
  )
    .requiredOption("--time-zone <name>", "IANA name, such as Europe/Berlin")
    .requiredOption("--open <hours>", "days and times (repeat for more)", several)
    .option("--closed <date>", "closed on this day, such as 2026-12-25 (repeat for more)", several);
  subcommand(
    hours,
    "clear <site> <business-unit>",
    "remove the hours, so that the business unit is always open",
    async ({ agents, output }, site: string, unit: string) => {
      const changed = await agents.setHours(site, businessUnit(unit), null);
      output.answer(changed, () => describeHours(changed.hours));
    },
  );
}

function keyCommands(token: Command): void {
  const keys = token.command("keys").description("manage the keys that sign tokens");
  subcommand(keys, "list", "list the keys of all tokens that may still be valid", async ({ keyring, output }) => {
    const all = await keyring.list();
    const day = (at: number | null): string => (at === null ? "–" : new Date(at).toISOString());
    const rows = all.map((key) => [key.kid, key.algorithm, day(key.signsFrom), day(key.publishedUntil)]);
    output.answer(all, () => table(["key", "algorithm", "signs from", "published until"], rows));
  });
  subcommand(
    keys,
    "rotate",
    "start using a new key; issued tokens stay valid",
    async ({ keyring, output, options }: Call<{ revoke?: boolean }>) => {
      const next = await keyring.rotate({ revoke: options.revoke ?? false });
      output.answer(next, () => `${next.kid} signs from ${new Date(next.signsFrom).toISOString()}`);
    },
  ).option("--revoke", "refuse all tokens of the old key now, because it leaked");
}

function paramsCommand(token: Command): void {
  token
    .command("params")
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
export function tokenCommand(program: Command): void {
  const token = program.command("token").description("manage applications, clients, users and their tokens");
  applicationCommands(token);
  clientCommands(token);
  userCommands(token);
  agentCommands(token);
  hoursCommands(token);
  keyCommands(token);
  paramsCommand(token);
  registrationCommands(token);
}
