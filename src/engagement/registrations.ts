import { newId } from "../token/access-token.js";
import { collection, type RecordParts } from "../token/documents.js";
import { invalidRequest, OAuthError } from "../token/errors.js";

/** Scopes that a registration may have. */
export const ENGAGEMENT_SCOPES = ["agent-availability"] as const;

interface StoredRegistration {
  readonly clientId: string;
  readonly name: string;
  readonly sites: readonly string[];
  readonly scopes: readonly string[];
  readonly secretHash: string;
  readonly createdAt: number;
  readonly lockedAt: number | null;
  readonly replaces: string | null;
}

/** A registered application, without the hash of its secret. */
export type Registration = Omit<StoredRegistration, "secretHash">;

/** Applications that the account manager registered. */
export interface Registrations {
  /** The secret is returned only here, once. */
  register(registration: {
    name: string;
    sites: readonly string[];
    scopes?: readonly string[];
  }): Promise<{ registration: Registration; secret: string }>;
  get(clientId: string): Promise<Registration>;
  list(): Promise<Registration[]>;
  /** Permanent: no new tokens, and tokens already issued are refused at once. */
  lock(clientId: string): Promise<Registration>;
  /** Locks the compromised registration and gives its application a new client id and secret. */
  reregister(clientId: string): Promise<{ registration: Registration; secret: string }>;
  authenticate(clientId: string, secret: string): Promise<Registration | null>;
  /** The registration behind a token, unless it is locked or gone. */
  active(clientId: string): Promise<Registration | null>;
}

const view = ({ secretHash: _, ...registration }: StoredRegistration): Registration => registration;

export function createRegistrations({ documents, clock, random, secrets }: RecordParts): Registrations {
  const registrations = collection<StoredRegistration>(documents, "engagement.registrations");

  function check({ name, sites, scopes = ENGAGEMENT_SCOPES }: Parameters<Registrations["register"]>[0]) {
    if (name.trim() === "" || name.length > 128)
      throw invalidRequest(`name must have 1 to 128 characters, got ${name.length}`);
    if (sites.length === 0) throw invalidRequest("sites must name at least one site");
    const wrong = sites.find((site) => !/^[A-Za-z0-9._-]{1,64}$/.test(site));
    if (wrong !== undefined)
      throw invalidRequest(`each site id must have 1 to 64 characters of A-Z a-z 0-9 . _ -, got "${wrong}"`);
    if (scopes.length === 0)
      throw new OAuthError("invalid_scope", "scopes must name at least one scope, or be left out");
    const unknown = scopes.find((scope) => !(ENGAGEMENT_SCOPES as readonly string[]).includes(scope));
    if (unknown !== undefined)
      throw new OAuthError(
        "invalid_scope",
        `unknown engagement scope "${unknown}"; known are ${ENGAGEMENT_SCOPES.join(", ")}`,
      );
    return { name: name.trim(), sites: [...new Set(sites)], scopes: [...new Set(scopes)] };
  }

  async function add(checked: ReturnType<typeof check>, replaces: string | null) {
    const secret = secrets.generate();
    const stored: StoredRegistration = {
      clientId: `engagement-${newId(clock, random)}`,
      ...checked,
      secretHash: await secrets.hash(secret, "generated"),
      createdAt: clock.now(),
      lockedAt: null,
      replaces,
    };
    await registrations.insert(stored.clientId, stored);
    return { registration: view(stored), secret };
  }

  const missing = (clientId: string) => new OAuthError("not_found", `registration ${clientId} does not exist`);

  async function lock(clientId: string): Promise<Registration> {
    const locked = await registrations.update(clientId, (registration) => {
      if (!registration) throw missing(clientId);
      return { ...registration, lockedAt: registration.lockedAt ?? clock.now() };
    });
    return view(locked);
  }

  return {
    register: async (given) => add(check(given), null),

    async get(clientId) {
      const registration = await registrations.get(clientId);
      if (!registration) throw missing(clientId);
      return view(registration);
    },

    list: async () => (await registrations.list()).map(view).sort((a, b) => a.createdAt - b.createdAt),
    lock,

    async reregister(clientId) {
      const { name, sites, scopes } = await lock(clientId);
      return add({ name, sites: [...sites], scopes: [...scopes] }, clientId);
    },

    async authenticate(clientId, secret) {
      const registration = await registrations.get(clientId);
      const matches = await secrets.matches(secret, registration?.secretHash ?? null, "generated");
      return matches && registration && registration.lockedAt === null ? view(registration) : null;
    },

    async active(clientId) {
      const registration = await registrations.get(clientId);
      return registration && registration.lockedAt === null ? view(registration) : null;
    },
  };
}
