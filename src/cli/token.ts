/** `vivavoce token …`: applications, clients, users, registrations, agents, hours and keys. */
import { type Command, Option } from "commander";
import { AGENT_STATES, type AgentState } from "../engagement/agents.js";
import { DAYS, type Day, type Hours, type Window } from "../engagement/hours.js";
import { SERVICES } from "../token/applications.js";
import { parseClientId } from "../token/client-id.js";
import { systemRandom } from "../token/clock.js";
import { writeConfig, writeParams } from "../token/config-file.js";
import type { TokenAdministration } from "../token/management-client.js";
import { generatePassword, type Role } from "../token/users.js";
import { type Place, withAdministration, withPlace } from "./administration.js";
import { CommandError } from "./command-error.js";
import { type Cell, createOutput, facts, table } from "./output.js";
import { readStandardInput } from "./standard-input.js";

type Call<Options = unknown> = TokenAdministration & { readonly options: Place & Options };

/** As JSON, for people, and a remark for people. */
type Answer = readonly [json: unknown, text: string, note?: string];

interface TokenCommand {
  readonly about: string;
  /** Adds something, and may be the first to do so in a new store. */
  readonly creates?: true;
  /** Adds options of its own. */
  readonly options?: (command: Command) => Command;
  run(call: Call, ...given: readonly (string | string[])[]): Promise<Answer>;
}

/** By name and arguments. */
type TokenCommands = Readonly<Record<string, TokenCommand>>;

function add(parent: Command, commands: TokenCommands): void {
  for (const [usage, command] of Object.entries(commands)) {
    const { about, creates, options: own = (command: Command) => command, run } = command;
    own(withPlace(parent.command(usage).description(about))).action((...all: unknown[]) => {
      const [options] = all.splice(-2) as [Place, Command];
      const output = createOutput(options.json);
      return withAdministration({ ...options, creates }, async (administration) => {
        const [json, text, note] = await run({ ...administration, options }, ...(all as (string | string[])[]));
        // Before the store closes: a secret must not be lost if that fails.
        output.answer(json, () => text);
        if (note !== undefined) output.note(note);
      });
    });
  }
}

const listing = <T>(
  about: string,
  list: (call: Call) => Promise<readonly T[]>,
  head: readonly string[],
  rowsOf: (one: T) => readonly (readonly Cell[])[],
): TokenCommand => ({
  about,
  async run(call) {
    const all = await list(call);
    return [all, table(head, all.flatMap(rowsOf))];
  },
});

const deletion = (about: string, remove: (call: Call, id: string) => Promise<void>): TokenCommand => ({
  about,
  async run(call, id: string) {
    await remove(call, id);
    return [{ deleted: id }, `deleted ${id}`];
  },
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

const secretAnswer = (clientId: string, clientSecret: string, applicationId?: string): Answer => [
  { applicationId, clientId, clientSecret },
  facts([
    ...(applicationId === undefined ? [] : [["application", applicationId] as const]),
    ["client id", clientId],
    ["client secret", clientSecret],
  ]),
  "save the secret now: it is not shown again",
];

type NewApplicationOptions = { environment: string; geo: string; oauthScope?: string[]; gkScope?: string[] };

type GeographyOptions = { oauthScope?: string[]; oauthServerUrl?: string } & Partial<
  Record<(typeof SERVICES)[number], string>
>;

const APPLICATIONS: TokenCommands = {
  "create <name>": {
    about: "create an application with its default client, and show the client's secret",
    creates: true,
    options: (command) =>
      command
        .option("--environment <name>", "environment of the application", "production")
        .option("--geo <geography>", "geography (region) of its first client", "local")
        .option("--oauth-scope <scope>", "allow only this OAuth scope, such as bio (repeat for more)", several)
        .option("--gk-scope <id>", "biometric scope of the default client (repeat for more)", several),
    async run({ applications, options }: Call<NewApplicationOptions>, name: string) {
      const { id, clients } = await applications.create({
        name,
        environment: options.environment,
        geography: options.geo,
        ...(options.oauthScope && { scopes: options.oauthScope }),
        gkScopes: options.gkScope ?? [],
      });
      const clientId = clients[0]!.id;
      return secretAnswer(clientId, await applications.regenerateSecret(id, clientId), id);
    },
  },
  list: listing(
    "list all applications and their clients",
    ({ applications }) => applications.list(),
    ["application", "environment", "client id", "biometric scopes", "secret"],
    ({ name, environment, clients }) =>
      clients.map(({ id, gkScopes, hasSecret }) => [
        name,
        environment,
        id,
        gkScopes.join(" "),
        hasSecret ? "yes" : "no",
      ]),
  ),
  "rename <application-id> <name>": {
    about: "rename an application; its ids and secrets stay the same",
    async run({ applications }, applicationId: string, given: string) {
      const { name } = await applications.rename(applicationId, { name: given });
      return [{ applicationId, name }, `renamed to ${name}`];
    },
  },
  "delete <application-id>": deletion("delete an application with all its clients", ({ applications }, id) =>
    applications.delete(id),
  ),
  "config <application-id>": {
    about: "print config.json, with a block for each client of a geography",
    options: (command) => command.option("--geo <geography>", "geography", "local"),
    async run({ config, options }: Call<{ geo: string }>, id: string) {
      const blocks = await config(id, options.geo);
      return [blocks, writeConfig(blocks).trimEnd()];
    },
  },
  "geo <application-id> <geography>": {
    about: "set a geography's scopes and service addresses",
    options: (command) =>
      command
        .option("--oauth-scope <scope>", "allow only this OAuth scope, such as bio (repeat for more)", several)
        .option("--oauth-server-url <url>", "address of the token endpoint")
        .option("--asr <host:port>", "address of the recognition service")
        .option("--nlu <host:port>", "address of the interpretation service")
        .option("--tts <host:port>", "address of the synthesis service")
        .option("--dlg <host:port>", "address of the dialog service")
        .option("--bio <host:port>", "address of the voiceprint service"),
    async run({ applications, options }: Call<GeographyOptions>, id: string, geography: string) {
      const named = SERVICES.flatMap((service) => (options[service] ? [[service, options[service]]] : []));
      const application = await applications.putGeography(id, geography, {
        ...(options.oauthScope && { scopes: options.oauthScope }),
        ...(options.oauthServerUrl && { oauthServerUrl: options.oauthServerUrl }),
        endpoints: Object.fromEntries(named),
      });
      return [application, JSON.stringify(application.geographies[geography], null, 2)];
    },
  },
};

const CLIENTS: TokenCommands = {
  "create <application-id> <name>": {
    about: "add a client to an application, and show its secret",
    options: (command) =>
      command
        .option("--geo <geography>", "geography; the application's first by default")
        .option("--gk-scope <id>", "biometric scope of the client (repeat for more)", several),
    async run(
      { applications, options }: Call<{ geo?: string; gkScope?: string[] }>,
      application: string,
      name: string,
    ) {
      const { id } = await applications.createClient(application, {
        name,
        ...(options.geo !== undefined && { geography: options.geo }),
        gkScopes: options.gkScope ?? [],
      });
      return secretAnswer(id, await applications.regenerateSecret(application, id));
    },
  },
  "secret <client-id>": {
    about: "create a new secret; the old one stops working",
    async run({ applications }, clientId: string) {
      const id = rawClientId(clientId);
      return secretAnswer(id, await applications.regenerateSecret(applicationOf(id), id));
    },
  },
  "bind <client-id> [gk-scopes...]": {
    about: "set the biometric scopes that a client's tokens give access to; give none to remove all",
    async run({ applications }, clientId: string, gkScopes: string[]) {
      const bound = await applications.bindScopes(applicationOf(clientId), rawClientId(clientId), gkScopes);
      return [bound, `${bound.id} has access to ${bound.gkScopes.join(" ") || "no biometric scope"}`];
    },
  },
  "delete <client-id>": deletion(
    "delete a client; the last client of an application cannot be deleted",
    ({ applications }, clientId) => applications.deleteClient(applicationOf(clientId), rawClientId(clientId)),
  ),
};

const roleOption = (): Option =>
  new Option("--role <role>", "an owner manages everything, a member only their own credentials").choices([
    "owner",
    "member",
  ]);

const USERS: TokenCommands = {
  "create <name>": {
    about: "create a user; without --password-stdin, a password is generated and shown",
    creates: true,
    options: (command) =>
      command
        .addOption(roleOption().default("member"))
        .option("--password-stdin", "read the password from standard input"),
    async run({ users, options }: Call<{ role: Role; passwordStdin?: boolean }>, name: string) {
      const password = options.passwordStdin ? await readStandardInput() : generatePassword(systemRandom);
      const created = await users.create({ name, role: options.role, password });
      return [
        { ...created, ...(!options.passwordStdin && { password }) },
        facts([
          ["user", created.name],
          ["role", created.role],
          ...(options.passwordStdin ? [] : ([["password", password]] as const)),
        ]),
      ];
    },
  },
  list: listing(
    "list all users",
    ({ users }) => users.list(),
    ["name", "role", "state"],
    ({ name, role, disabled }) => [[name, role, stateOf(disabled)]],
  ),
  "change <name>": {
    about: "change a user's role, password or state",
    options: (command) =>
      command
        .addOption(roleOption())
        .option("--password-stdin", "read a new password from standard input")
        .option("--disable", "refuse sign-in, tokens and credentials")
        .option("--enable", "allow them again"),
    async run(
      { users, options }: Call<{ role?: Role; passwordStdin?: boolean; disable?: boolean; enable?: boolean }>,
      name: string,
    ) {
      if (options.disable && options.enable) throw new CommandError("give either --disable or --enable, not both");
      if (!options.role && !options.passwordStdin && !options.disable && !options.enable)
        throw new CommandError("nothing to change: give --role, --password-stdin, --disable or --enable");
      const changed = await users.change(name, {
        ...(options.role && { role: options.role }),
        ...((options.disable || options.enable) && { disabled: options.disable === true }),
        ...(options.passwordStdin && { password: await readStandardInput() }),
      });
      return [changed, `${changed.name}: ${changed.role}, ${stateOf(changed.disabled)}`];
    },
  },
  "delete <name>": deletion("delete a user and all their credentials", ({ deleteUser }, name) => deleteUser(name)),
  "credential <label>": {
    about: "create a credential, as on the profile page: a service account or, with --redirect, a user account",
    options: (command) =>
      command
        .option("--user <name>", "user that the credential is for; with --url, always the user of the token")
        .option("--redirect <uri>", "redirect address of a user account (repeat for more)", several),
    async run({ createCredential, options }: Call<{ user?: string; redirect?: string[] }>, label: string) {
      if (options.url === undefined && options.user === undefined)
        throw new CommandError(
          "--user is required, unless --url is given",
          "give --user NAME, the user that the credential is for",
        );
      const { credential, secret } = await createCredential(options.user, {
        kind: options.redirect ? "user" : "service",
        label,
        ...(options.redirect && { redirectUris: options.redirect }),
      });
      return secretAnswer(credential.clientId, secret);
    },
  },
};

const stateOf = (disabled: boolean): string => (disabled ? "disabled" : "active");

const REGISTRATIONS: TokenCommands = {
  "register <name>": {
    about: "register an application for the engagement API, and show its secret",
    creates: true,
    options: (command) =>
      command
        .requiredOption("--site <id>", "site that its tokens give access to (repeat for more)", several)
        .option("--scope <scope>", "OAuth scope of its tokens (repeat for more)", several),
    async run({ registrations, options }: Call<{ site: string[]; scope?: string[] }>, name: string) {
      const { registration, secret } = await registrations.register({
        name,
        sites: options.site,
        ...(options.scope && { scopes: options.scope }),
      });
      return secretAnswer(registration.clientId, secret);
    },
  },
  registrations: listing(
    "list the registrations for the engagement API",
    ({ registrations }) => registrations.list(),
    ["client id", "name", "sites", "scopes", "state"],
    ({ clientId, name, sites, scopes, lockedAt }) => [
      [clientId, name, sites.join(" "), scopes.join(" "), lockedAt === null ? "active" : "locked"],
    ],
  ),
  "lock <client-id>": {
    about: "lock a compromised registration: it gets no more tokens, and its issued tokens are refused at once",
    async run({ registrations }, clientId: string) {
      const locked = await registrations.lock(clientId);
      return [locked, `locked ${locked.clientId}`];
    },
  },
  "reregister <client-id>": {
    about: "lock a registration and give its application a new client id and secret",
    async run({ registrations }, clientId: string) {
      const { registration, secret } = await registrations.reregister(clientId);
      return secretAnswer(registration.clientId, secret);
    },
  },
};

const AGENTS: TokenCommands = {
  "set <site> <business-unit> <agent>": {
    about: "add an agent, or change one",
    creates: true,
    options: (command) =>
      command
        .addOption(new Option("--state <state>", "current state of the agent").choices(AGENT_STATES))
        .option("--group <id>", "group that the agent belongs to (repeat for more)", several),
    async run(
      { agents, options }: Call<{ state?: AgentState; group?: string[] }>,
      site: string,
      unit: string,
      agent: string,
    ) {
      const changed = await agents.put(site, businessUnit(unit), {
        id: agent,
        ...(options.state && { state: options.state }),
        ...(options.group && { groups: options.group }),
      });
      const rows = changed.agents.map(({ id, state, groups }) => [id, state, groups.join(" ")]);
      return [changed, table(["agent", "state", "groups"], rows)];
    },
  },
  "remove <site> <business-unit> <agent>": {
    about: "remove an agent",
    async run({ agents }, site: string, unit: string, id: string) {
      return [await agents.remove(site, businessUnit(unit), id), `removed ${id}`];
    },
  },
  list: listing(
    "list all business units with their agents and hours",
    ({ agents }) => agents.list(),
    ["site", "business unit", "agent", "state", "groups", "hours"],
    ({ siteId, businessUnitId, agents, hours }) =>
      (agents.length ? agents : [{ id: "–", state: "–", groups: [] }]).map(({ id, state, groups }) => [
        siteId,
        businessUnitId,
        id,
        state,
        groups.join(" "),
        describeHours(hours),
      ]),
  ),
};

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

const HOURS: TokenCommands = {
  "set <site> <business-unit>": {
    about: 'set the hours of operation, for example --open "mon-fri 09:00-17:30" --open "sat 10:00-14:00"',
    creates: true,
    options: (command) =>
      command
        .requiredOption("--time-zone <name>", "time zone of the hours, such as Europe/Berlin")
        .requiredOption("--open <hours>", "days and times when it is open (repeat for more)", several)
        .option("--closed <date>", "date when it is closed, such as 2026-12-25 (repeat for more)", several),
    async run(
      { agents, options }: Call<{ timeZone: string; open: string[]; closed?: string[] }>,
      site: string,
      unit: string,
    ) {
      const weekly: Partial<Record<Day, Window[]>> = {};
      for (const { days, window } of options.open.map(parseOpening))
        for (const day of days) weekly[day] = [...(weekly[day] ?? []), window];
      const exceptions = Object.fromEntries((options.closed ?? []).map((date) => [date, []]));
      const given = { timeZone: options.timeZone, weekly, exceptions };
      const changed = await agents.setHours(site, businessUnit(unit), given);
      return [changed, describeHours(changed.hours)];
    },
  },
  "clear <site> <business-unit>": {
    about: "remove the hours, so that the business unit is always open",
    async run({ agents }, site: string, unit: string) {
      const changed = await agents.setHours(site, businessUnit(unit), null);
      return [changed, describeHours(changed.hours)];
    },
  },
};

const timeOf = (at: number | null): string => (at === null ? "–" : new Date(at).toISOString());

const KEYS: TokenCommands = {
  list: listing(
    "list the keys of all tokens that may still be valid",
    ({ keyring }) => keyring.list(),
    ["key", "algorithm", "signs from", "published until"],
    ({ kid, algorithm, signsFrom, publishedUntil }) => [[kid, algorithm, timeOf(signsFrom), timeOf(publishedUntil)]],
  ),
  rotate: {
    about: "start using a new key; issued tokens stay valid",
    options: (command) => command.option("--revoke", "refuse all tokens of the old key now, because it leaked"),
    async run({ keyring, options }: Call<{ revoke?: boolean }>) {
      const next = await keyring.rotate({ revoke: options.revoke ?? false });
      return [next, `${next.kid} signs from ${timeOf(next.signsFrom)}`];
    },
  },
};

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

export function tokenCommand(program: Command): void {
  const token = program.command("token").description("manage applications, clients, users and their tokens");
  for (const [name, about, commands] of [
    ["app", "manage applications: programs that use the box", APPLICATIONS],
    ["client", "manage the clients of an application", CLIENTS],
    ["user", "manage users who can sign in", USERS],
    ["agent", "manage the agents of a site's business units", AGENTS],
    ["hours", "manage the hours of operation of a business unit", HOURS],
    ["keys", "manage the keys that sign tokens", KEYS],
  ] as const)
    add(token.command(name).description(about), commands);
  paramsCommand(token);
  add(token, REGISTRATIONS);
}
