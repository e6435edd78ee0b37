import { createAgents } from "../engagement/agents.js";
import { createEngagementGrant } from "../engagement/engagement-token.js";
import { createRegistrations } from "../engagement/registrations.js";
import { AUDIENCES, type Audiences, createIssuer, LIFETIMES } from "./access-token.js";
import { createApplications, type Endpoints } from "./applications.js";
import type { Audit } from "./audit.js";
import { createClientCredentialsGrant } from "./client-credentials.js";
import { type Clock, checkedClock, type Random, systemClock, systemRandom } from "./clock.js";
import { createProfileCredentials } from "./credentials.js";
import type { Documents } from "./documents.js";
import { createKeyring, type KeyringOptions, type SigningAlgorithm } from "./keyring.js";
import type { OwnPage } from "./own-pages.js";
import { createRevocations } from "./revocations.js";
import { type Cost, createSecrets } from "./secret.js";
import { createBrowserSessions } from "./sessions.js";
import { createThrottle, failuresInMemory, failuresInStore } from "./throttle.js";
import { createUsers, type User, type UserChange } from "./users.js";
import { createVerifier, type TrustedIssuer, type Verifier } from "./verify.js";

/** Options of the token service. */
export interface TokenServiceOptions {
  readonly documents: Documents;
  /** The address that clients see, without path or trailing slash: `iss` of every token. */
  readonly issuer: string;
  readonly audiences?: Audiences;
  readonly algorithm?: SigningAlgorithm;
  /** Pages of this box that sign users in. */
  readonly pages?: readonly OwnPage[];
  /** Runtime services of environments that name none: by default the voiceprint service of this box. */
  readonly endpoints?: Endpoints;
  /** Cost of checking a password, which slows down guessing. */
  readonly passwordCost?: Cost;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly audit?: Audit;
  readonly keys?: Pick<KeyringOptions, "leadMs" | "rotateAfterMs" | "generateKey">;
}

/** The operations of the token and engagement services, called by the transports and the command line. */
export type TokenService = ReturnType<typeof createTokenService>;

/** Issuer and verifier run on one machine or on machines with synchronized clocks. */
const OWN_SKEW_S = 5;

function checkIssuer(issuer: string): string {
  if (!URL.canParse(issuer)) throw new TypeError(`the issuer must be an http or https address, got ${issuer}`);
  const url = new URL(issuer);
  if (!/^https?:$/.test(url.protocol) || url.origin !== issuer)
    throw new TypeError(`the issuer must be an origin such as ${url.origin}, got ${issuer}`);
  return issuer;
}

function thisBox(issuer: string): Endpoints {
  const { hostname, port, protocol } = new URL(issuer);
  return { bio: `${hostname}:${port || (protocol === "https:" ? 443 : 80)}` };
}

/** Creates the token service on a store; it does not listen on a port. */
export function createTokenService(options: TokenServiceOptions) {
  const { documents, random = systemRandom, audiences = AUDIENCES, audit = () => {} } = options;
  const clock = checkedClock(options.clock ?? systemClock);
  if (new Set(Object.values(audiences)).size !== 3)
    throw new TypeError("runtime, tooling and engagement must have different audiences");
  const issuer = checkIssuer(options.issuer);
  const longestTokenS = Math.max(...Object.values(LIFETIMES)) + OWN_SKEW_S;
  const keyring = createKeyring({
    documents,
    clock,
    ...(options.algorithm ? { algorithm: options.algorithm } : {}),
    longestTokenMs: longestTokenS * 1000,
    ...options.keys,
  });
  const secrets = createSecrets(random, options.passwordCost);
  const throttle = createThrottle({ documents, failures: failuresInStore(documents), clock });
  const clientThrottle = createThrottle({ documents, failures: failuresInMemory(clock), clock });
  const issue = createIssuer({ issuer, audiences, keyring, clock, random });
  const revocations = createRevocations(documents, clock, longestTokenS);
  const parts = { documents, clock, random, secrets };
  const users = createUsers(parts);
  const credentials = createProfileCredentials({ ...parts, users });
  const registrations = createRegistrations(parts);
  const applications = createApplications({
    ...parts,
    revocations,
    defaults: { oauthServerUrl: `${issuer}/oauth2/token`, endpoints: options.endpoints ?? thisBox(issuer) },
  });

  const ownPage = (clientId: string): OwnPage | null =>
    options.pages?.find((page) => page.clientId === clientId) ?? null;

  const trusted = (audience: keyof Audiences): TrustedIssuer => ({
    issuer,
    keys: (fresh) => keyring.jwks(fresh),
    audience: audiences[audience],
    algorithms: ["ES256", "RS256", "EdDSA"],
    type: "at+jwt",
    clockSkewS: OWN_SKEW_S,
    isRevoked: async (token) =>
      (await revocations.isRevoked(token)) || (token.keyId !== null && (await keyring.isRevoked(token.keyId))),
  });
  const verifier = (audience: keyof Audiences): Verifier => createVerifier({ issuers: [trusted(audience)], clock });

  return {
    issuer,
    audiences,
    documents,
    clock,
    random,
    audit,
    keyring,
    throttle,
    clientThrottle,
    applications,
    users,
    credentials,
    sessions: createBrowserSessions({ documents, clock, random, users }),
    registrations,
    agents: createAgents({ documents, clock }),
    revocations,
    ownPage,

    /** The user whose permissions a tooling token of this client has now; `null` when the token is no longer valid. */
    async userOf(clientId: string, userId: string): Promise<User | null> {
      if (!ownPage(clientId)) return credentials.userOf(clientId, userId);
      const user = await users.byId(userId);
      return user && !user.disabled ? user : null;
    },

    /** Refuses to take away the last owner. */
    changeUser(name: string, change: UserChange): Promise<User> {
      const apply = () => users.change(name, change);
      const takes = change.role === "member" || change.disabled === true;
      return takes ? users.keepingAnOwner(name, apply) : apply();
    },

    /** Deletes a user, but not the last owner, and all credentials of that user. */
    deleteUser(name: string): Promise<void> {
      return users.keepingAnOwner(name, async () => {
        const user = await users.find(name);
        await users.delete(name);
        if (user) await credentials.deleteAllOf(user);
      });
    },

    clientCredentials: createClientCredentialsGrant({
      applications,
      credentials,
      issue,
      revocations,
      clientThrottle,
      audit,
      clock,
    }),
    engagementToken: createEngagementGrant({ registrations, issue, clientThrottle, audit }),
    /** For `createVerifier`: accepts our own runtime tokens, with keys from this process. */
    runtimeIssuer: trusted("runtime"),
    runtime: verifier("runtime"),
    tooling: verifier("tooling"),
    engagement: verifier("engagement"),
  };
}
