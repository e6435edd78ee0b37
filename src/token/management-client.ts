import type { Hours } from "../engagement/hours.js";
import { applicationsOver } from "./applications-client.js";
import { type CredentialBlock, credentialBlocks } from "./config-file.js";
import type { CredentialKind, ProfileCredential } from "./credentials.js";
import { OAuthError, type OAuthErrorCode } from "./errors.js";
import type { Keyring } from "./keyring.js";
import type { TokenService } from "./service.js";

/** What an administrator can do, on a local store or on a running box. */
export interface TokenAdministration extends Pick<TokenService, "deleteUser"> {
  readonly applications: Omit<TokenService["applications"], "authenticate">;
  readonly users: Pick<TokenService["users"], "create" | "list" | "change">;
  readonly registrations: Omit<TokenService["registrations"], "authenticate" | "active">;
  readonly agents: Omit<TokenService["agents"], "availability">;
  readonly keyring: Pick<Keyring, "list" | "rotate">;
  config(applicationId: string, geography: string): Promise<CredentialBlock[]>;
  /** For the named user of the store, or without `userName` for the user whose token is sent. */
  createCredential(
    userName: string | undefined,
    credential: { kind: CredentialKind; label: string; redirectUris?: readonly string[] },
  ): Promise<{ credential: ProfileCredential; secret: string }>;
}

/** Administration of a token service in this process. */
export function administerService(service: TokenService): TokenAdministration {
  const { applications, users, registrations, agents, keyring, credentials, changeUser, deleteUser } = service;
  return {
    applications,
    users: { ...users, change: changeUser },
    registrations,
    agents,
    keyring,
    deleteUser,
    config: async (applicationId, geography) => credentialBlocks(await applications.get(applicationId), geography),
    async createCredential(userName, credential) {
      const user = userName === undefined ? null : await users.find(userName);
      if (!user) throw new OAuthError("not_found", `user ${userName} does not exist`);
      return credentials.create(user, credential);
    },
  };
}

const part = encodeURIComponent;

/** Administration over a box's management interface. `authorization` returns the header's value, and is called before each request. */
export function createManagementClient(options: {
  url: string;
  authorization: () => Promise<string>;
  fetch?: typeof fetch;
}): TokenAdministration {
  const send = options.fetch ?? fetch;

  async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await send(`${options.url.replace(/\/$/, "")}/management/v1${path}`, {
      method,
      headers: {
        Authorization: await options.authorization(),
        ...(body !== undefined && { "Content-Type": "application/json" }),
      },
      redirect: "error",
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (response.status === 204) return undefined as T;
    const answer = (await response.json().catch(() => ({}))) as T & {
      error?: OAuthErrorCode;
      error_description?: string;
    };
    if (response.ok) return answer;
    throw new OAuthError(
      answer.error ?? "server_error",
      answer.error_description ?? `the box answered HTTP ${response.status}`,
      { status: response.status },
    );
  }

  const unit = (siteId: string, businessUnitId: number): string =>
    `/sites/${part(siteId)}/business-units/${businessUnitId}`;

  return {
    applications: applicationsOver(call),
    users: {
      create: (user) => call("POST", "/users", user),
      list: () => call("GET", "/users"),
      change: (name, change) => call("PATCH", `/users/${part(name)}`, change),
    },
    deleteUser: (name) => call("DELETE", `/users/${part(name)}`),
    registrations: {
      register: (registration) => call("POST", "/registrations", registration),
      get: (clientId) => call("GET", `/registrations/${part(clientId)}`),
      list: () => call("GET", "/registrations"),
      lock: (clientId) => call("POST", `/registrations/${part(clientId)}/lock`),
      reregister: (clientId) => call("POST", `/registrations/${part(clientId)}/reregister`),
    },
    agents: {
      put: (siteId, businessUnitId, { id, ...agent }) =>
        call("PUT", `${unit(siteId, businessUnitId)}/agents/${part(id)}`, agent),
      remove: (siteId, businessUnitId, agentId) =>
        call("DELETE", `${unit(siteId, businessUnitId)}/agents/${part(agentId)}`),
      setHours: (siteId, businessUnitId, hours: Hours | null) =>
        hours === null
          ? call("DELETE", `${unit(siteId, businessUnitId)}/hours`)
          : call("PUT", `${unit(siteId, businessUnitId)}/hours`, hours),
      list: () => call("GET", "/business-units"),
    },
    keyring: {
      list: () => call("GET", "/keys"),
      rotate: (rotation = {}) => call("POST", "/keys/rotate", rotation),
    },
    config: (id, geography) => call("GET", `/applications/${part(id)}/geographies/${part(geography)}/config.json`),
    async createCredential(userName, credential) {
      const me = await call<{ name: string }>("GET", "/me");
      if (userName !== undefined && userName !== me.name)
        throw new OAuthError(
          "access_denied",
          "the management interface can only create credentials of the signed-in user",
        );
      return call("POST", "/me/credentials", credential);
    },
  };
}
