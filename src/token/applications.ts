import { newId } from "./access-token.js";
import { checkSegment, formatClientId, parseClientId } from "./client-id.js";
import { collection, type RecordParts } from "./documents.js";
import { invalidRequest, OAuthError } from "./errors.js";
import type { Revocations } from "./revocations.js";
import { isRuntimeScope, RUNTIME_SCOPES, type RuntimeScope } from "./scopes.js";

/** Runtime services that have their own address; `bio` is the voiceprint service. */
export const SERVICES = ["asr", "nlu", "tts", "dlg", "bio"] as const;

/** Addresses (`host:port`) of the runtime services that exist in one geography of an environment. */
export type Endpoints = { readonly [service in (typeof SERVICES)[number]]?: string };

/** `host:port`; an IPv6 address is in brackets. */
export const isEndpoint = (text: string): boolean => /^(?:\[[0-9A-Fa-f:.]+\]|[^\s:/]+):\d{1,5}$/.test(text);

/** Addresses of the services in one geography, and the scopes an application may use there. */
export interface Geography {
  readonly oauthServerUrl: string;
  readonly scopes: readonly RuntimeScope[];
  readonly endpoints: Endpoints;
}

interface StoredClient {
  readonly id: string;
  readonly name: string;
  readonly geography: string;
  readonly gkScopes: readonly string[];
  readonly secretHash: string | null;
  readonly secretCreatedAt: number | null;
  readonly createdAt: number;
}

interface StoredApplication {
  readonly id: string;
  readonly name: string;
  readonly environment: string;
  readonly geographies: Readonly<Record<string, Geography>>;
  readonly clients: readonly StoredClient[];
  readonly createdAt: number;
}

/** A client as it may be shown, without the hash of its secret. */
export type Client = Omit<StoredClient, "secretHash"> & { readonly hasSecret: boolean };

/** One environment of an application, identified by the application id. */
export type Application = Omit<StoredApplication, "clients"> & { readonly clients: readonly Client[] };

/** What can be set of a geography; defaults apply to the rest. */
export interface GeographySettings {
  readonly scopes?: readonly string[];
  readonly oauthServerUrl?: string;
  readonly endpoints?: Endpoints;
}

/** What is needed to create an application. */
export interface NewApplication extends GeographySettings {
  readonly name: string;
  readonly environment: string;
  readonly geography: string;
  /** Biometric scopes of the default client. */
  readonly gkScopes?: readonly string[];
}

/** A client whose secret was right. */
export interface AuthenticatedClient {
  readonly id: string;
  readonly applicationId: string;
  readonly scopes: readonly RuntimeScope[];
  readonly gkScopes: readonly string[];
}

/** Applications and their clients, which get tokens with client credentials. */
export interface Applications {
  create(application: NewApplication): Promise<Application>;
  get(applicationId: string): Promise<Application>;
  list(): Promise<Application[]>;
  /** Changes the names; ids and secrets stay the same. */
  rename(applicationId: string, names: { name?: string; environment?: string }): Promise<Application>;
  delete(applicationId: string): Promise<void>;
  putGeography(applicationId: string, geography: string, settings: GeographySettings): Promise<Application>;
  createClient(
    applicationId: string,
    client: { name: string; geography?: string; gkScopes?: readonly string[] },
  ): Promise<Client>;
  /** The last client cannot be deleted: an application always has a client id. */
  deleteClient(applicationId: string, clientId: string): Promise<void>;
  bindScopes(applicationId: string, clientId: string, gkScopes: readonly string[]): Promise<Client>;
  /** Returns a new secret, once. The old secret gets no more tokens from now on. */
  regenerateSecret(applicationId: string, clientId: string): Promise<string>;
  authenticate(clientId: string, secret: string): Promise<AuthenticatedClient | null>;
}

const LONGEST_NAME = 128;
const LONGEST_BINDING = 4096;

function checkName(what: string, name: string): string {
  if (name.trim() === "" || name.length > LONGEST_NAME)
    throw invalidRequest(`${what} must have 1 to ${LONGEST_NAME} characters`, "nameLength");
  return name;
}

function checkScopes(scopes: readonly string[]): RuntimeScope[] {
  const unknown = scopes.find((scope) => !isRuntimeScope(scope));
  if (unknown !== undefined) throw new OAuthError("invalid_scope", `unknown runtime scope: ${unknown}`);
  if (scopes.length === 0)
    throw new OAuthError("invalid_scope", "an environment needs at least one scope", {
      refusal: "servicesNeeded",
    });
  return RUNTIME_SCOPES.filter((scope) => scopes.includes(scope));
}

function checkGkScopes(gkScopes: readonly string[]): string[] {
  const wrong = gkScopes.find((id) => !/^[\x21-\x7e]{1,128}$/.test(id));
  if (wrong !== undefined)
    throw invalidRequest(
      `a biometric scope id must have 1 to 128 printable ASCII characters and no spaces, got "${wrong}"`,
      "scopeIds",
    );
  const ids = [...new Set(gkScopes)];
  // They are part of every token, and the token is sent in the header of every request.
  if (ids.join().length > LONGEST_BINDING)
    throw invalidRequest(
      `the biometric scope ids of a client may have at most ${LONGEST_BINDING} characters in total`,
      "scopeIds",
    );
  return ids;
}

/** `readConfig` refuses a configuration file with other addresses. An empty one removes a service. */
function checkEndpoints(endpoints: Endpoints = {}): Endpoints {
  const wrong = Object.entries(endpoints).find(([, address]) => address !== "" && !isEndpoint(address));
  if (wrong) throw invalidRequest(`the address of ${wrong[0]} must be host:port, got ${wrong[1].slice(0, 80)}`);
  return endpoints;
}

function checkServerUrl(url: string): string {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw invalidRequest(`oauthServerUrl must be an http or https address, got ${url.slice(0, 80)}`);
  return url;
}

const viewClient = ({ secretHash, ...client }: StoredClient): Client => ({ ...client, hasSecret: secretHash !== null });
const view = (application: StoredApplication): Application => ({
  ...application,
  clients: application.clients.map(viewClient),
});

interface ApplicationParts extends RecordParts {
  readonly revocations: Revocations;
  /** Used by environments that do not set their own. */
  readonly defaults: { oauthServerUrl: string; endpoints: Endpoints };
}

export function createApplications(options: ApplicationParts): Applications {
  const { clock, random, secrets, revocations, defaults } = options;
  const applications = collection<StoredApplication>(options.documents, "token.applications");

  const settings = (given: GeographySettings, before?: Geography): Geography => ({
    oauthServerUrl: checkServerUrl(given.oauthServerUrl ?? before?.oauthServerUrl ?? defaults.oauthServerUrl),
    scopes: checkScopes(given.scopes ?? before?.scopes ?? RUNTIME_SCOPES),
    endpoints: { ...defaults.endpoints, ...before?.endpoints, ...checkEndpoints(given.endpoints) },
  });

  const newClient = (
    applicationId: string,
    name: string,
    geography: string,
    gkScopes: readonly string[],
  ): StoredClient => ({
    id: formatClientId({ applicationId, geography, clientName: name }),
    name,
    geography,
    gkScopes: checkGkScopes(gkScopes),
    secretHash: null,
    secretCreatedAt: null,
    createdAt: clock.now(),
  });

  const missing = (what: "application" | "client" | "geography", id: string): OAuthError =>
    new OAuthError("not_found", `${what} ${id} does not exist`, { refusal: `${what}NotFound` });

  async function load(applicationId: string): Promise<StoredApplication> {
    const application = await applications.get(applicationId);
    if (!application) throw missing("application", applicationId);
    return application;
  }

  /** Changes an application atomically; if `change` throws, nothing is written. */
  const modify = <Next extends StoredApplication | null>(
    applicationId: string,
    change: (application: StoredApplication) => Next,
  ): Promise<Next> =>
    applications.update(applicationId, (application) => {
      if (!application) throw missing("application", applicationId);
      return change(application);
    });

  /**
   * Changes an application, or deletes it (`null`), and ends tokens at once, not after 900 s: an operator who deletes an application or a client
   * after a leak expects that. Before the write, because a box that is killed right after it could not, and once more after the write, for
   * tokens that were issued in between.
   */
  async function modifyEnding<Next extends StoredApplication | null>(
    applicationId: string,
    change: (application: StoredApplication) => { next: Next; ended: readonly Parameters<Revocations["endClient"]>[] },
  ): Promise<Next> {
    const end = async (ended: readonly Parameters<Revocations["endClient"]>[]) => {
      for (const tokens of ended) await revocations.endClient(...tokens);
    };
    await end(change(await load(applicationId)).ended);
    let changed: ReturnType<typeof change> | undefined;
    await modify(applicationId, (application) => {
      changed = change(application);
      return changed.next;
    });
    await end(changed!.ended);
    return changed!.next;
  }

  function clientOf({ clients }: StoredApplication, clientId: string): StoredClient {
    const client = clients.find(({ id }) => id === clientId);
    if (!client) throw missing("client", clientId);
    return client;
  }

  const withClient = (
    application: StoredApplication,
    clientId: string,
    change: (client: StoredClient) => StoredClient,
  ): StoredApplication => {
    const changed = change(clientOf(application, clientId));
    return { ...application, clients: application.clients.map((one) => (one.id === clientId ? changed : one)) };
  };

  return {
    async create(given) {
      const id = newId(clock, random);
      const geography = checkSegment("geography", given.geography);
      const application: StoredApplication = {
        id,
        name: checkName("name", given.name),
        environment: checkName("environment", given.environment),
        geographies: { [geography]: settings(given) },
        clients: [newClient(id, "default", geography, given.gkScopes ?? [])],
        createdAt: clock.now(),
      };
      await applications.insert(id, application);
      return view(application);
    },

    get: async (applicationId) => view(await load(applicationId)),
    list: async () => (await applications.list()).map(view).sort((a, b) => a.createdAt - b.createdAt),

    async rename(applicationId, { name, environment }) {
      return view(
        await modify(applicationId, (application) => ({
          ...application,
          ...(name !== undefined && { name: checkName("name", name) }),
          ...(environment !== undefined && { environment: checkName("environment", environment) }),
        })),
      );
    },

    async delete(applicationId) {
      await modifyEnding(applicationId, ({ clients }) => ({ next: null, ended: clients.map(({ id }) => [id]) }));
    },

    async putGeography(applicationId, geography, given) {
      checkSegment("geography", geography);
      return view(
        await modify(applicationId, (application) => ({
          ...application,
          geographies: { ...application.geographies, [geography]: settings(given, application.geographies[geography]) },
        })),
      );
    },

    async createClient(applicationId, { name, geography, gkScopes = [] }) {
      let created: StoredClient | undefined;
      await modify(applicationId, (application) => {
        const where = geography ?? (Object.keys(application.geographies)[0] as string);
        if (!Object.hasOwn(application.geographies, where)) throw missing("geography", where);
        const client = newClient(application.id, name, where, gkScopes);
        if (application.clients.some(({ id }) => id === client.id))
          throw new OAuthError("conflict", "a client with this name already exists", { refusal: "clientExists" });
        created = client;
        return { ...application, clients: [...application.clients, client] };
      });
      return viewClient(created as StoredClient);
    },

    async deleteClient(applicationId, clientId) {
      await modifyEnding(applicationId, (application) => {
        const clients = application.clients.filter(({ id }) => id !== clientId);
        if (clients.length === application.clients.length) throw missing("client", clientId);
        if (clients.length === 0)
          throw new OAuthError("conflict", "the last client of an application cannot be deleted", {
            refusal: "lastClient",
          });
        return { next: { ...application, clients }, ended: [[clientId]] };
      });
    },

    async bindScopes(applicationId, clientId, gkScopes) {
      const checked = checkGkScopes(gkScopes);
      const bound = await modifyEnding(applicationId, (application) => {
        const before = clientOf(application, clientId).gkScopes;
        const lost = before.filter((gkScope) => !checked.includes(gkScope));
        const next = withClient(application, clientId, (client) => ({ ...client, gkScopes: checked }));
        return { next, ended: [[clientId, lost]] };
      });
      return viewClient(clientOf(bound, clientId));
    },

    async regenerateSecret(applicationId, clientId) {
      const secret = secrets.generate();
      const secretHash = await secrets.hash(secret, "generated");
      await modify(applicationId, (application) =>
        withClient(application, clientId, (client) => ({ ...client, secretHash, secretCreatedAt: clock.now() })),
      );
      return secret;
    },

    // An unknown application is refused slightly sooner than an unknown client or a wrong secret. Its id has 74 random bits, so nobody can
    // find one by trying; names of clients can be guessed, and these take the same time.
    async authenticate(clientId, secret) {
      const parts = parseClientId(clientId);
      const application = parts && (await applications.get(parts.applicationId));
      const client = application?.clients.find(({ id }) => id === clientId);
      if (!(await secrets.matches(secret, client?.secretHash ?? null, "generated")) || !application || !client)
        return null;
      return {
        id: client.id,
        applicationId: application.id,
        scopes: application.geographies[client.geography]?.scopes ?? [],
        gkScopes: client.gkScopes,
      };
    },
  };
}
