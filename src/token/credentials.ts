import { newId } from "./access-token.js";
import { collection, type RecordParts } from "./documents.js";
import { invalidRequest, OAuthError } from "./errors.js";
import type { User, Users } from "./users.js";

/** `service` uses client credentials; `user` uses the authorization code flow, where the user signs in. */
export type CredentialKind = "service" | "user";

interface StoredCredential {
  readonly clientId: string;
  readonly kind: CredentialKind;
  readonly label: string;
  readonly userName: string;
  readonly userId: string;
  readonly redirectUris: readonly string[];
  readonly secretHash: string;
  readonly createdAt: number;
}

/** A credential that a user created on the profile page. It has the permissions of that user and no others. */
export type ProfileCredential = Omit<StoredCredential, "secretHash">;

/** Credentials that users create for themselves on the profile page. */
export interface ProfileCredentials {
  /** The secret is returned only here, once. */
  create(
    user: User,
    credential: { kind: CredentialKind; label: string; redirectUris?: readonly string[] },
  ): Promise<{ credential: ProfileCredential; secret: string }>;
  ofUser(user: Pick<User, "id">): Promise<ProfileCredential[]>;
  get(clientId: string): Promise<ProfileCredential | null>;
  /** Refuses a credential of another user. */
  delete(user: Pick<User, "id">, clientId: string): Promise<void>;
  deleteAllOf(user: Pick<User, "id">): Promise<void>;
  /** The credential and the current state of its user; `null` when the secret is wrong or the user is deleted or disabled. */
  authenticate(clientId: string, secret: string): Promise<{ credential: ProfileCredential; user: User } | null>;
  /** The user whose permissions a tooling token of this credential has now; `null` when the token is no longer valid. */
  userOf(clientId: string, userId: string): Promise<User | null>;
}

const PREFIX = "platform-";
export const isProfileClientId = (clientId: string): boolean => clientId.startsWith(PREFIX);

const MOST_REDIRECTS = 10;
const MOST_CREDENTIALS = 50;

/** RFC 6749 §3.1.2 and RFC 8252 §7.3: absolute, no fragment, https except on this machine. */
function checkRedirectUri(text: string): string {
  const wrong = (why: string): OAuthError => invalidRequest(`the redirect address ${why}`, "redirectAddress");
  if (!URL.canParse(text)) throw wrong("must be absolute");
  const url = new URL(text);
  if (text.includes("#")) throw wrong("must not have a fragment");
  if (text.includes("*")) throw wrong("must not have a wildcard");
  if (url.username || url.password) throw wrong("must not have a user name or password");
  const loopback = ["127.0.0.1", "[::1]", "localhost"].includes(url.hostname);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && loopback))
    throw wrong("must be https, or http on this machine");
  return text;
}

const tooMany = (): OAuthError =>
  new OAuthError("conflict", `a user can have at most ${MOST_CREDENTIALS} credentials; delete one first`, {
    refusal: "tooManyCredentials",
  });

const view = ({ secretHash: _, ...credential }: StoredCredential): ProfileCredential => credential;

export function createProfileCredentials(options: RecordParts & { readonly users: Users }): ProfileCredentials {
  const { clock, random, secrets, users } = options;
  const credentials = collection<StoredCredential>(options.documents, "token.credentials");
  const ofUser = async ({ id }: Pick<User, "id">): Promise<StoredCredential[]> =>
    (await credentials.list()).filter(({ userId }) => userId === id).sort((a, b) => a.createdAt - b.createdAt);

  async function activeUser(credential: ProfileCredential): Promise<User | null> {
    const user = await users.find(credential.userName, credential.userId);
    return user && !user.disabled ? user : null;
  }

  return {
    async create(user, { kind, label, redirectUris = [] }) {
      if (kind !== "service" && kind !== "user")
        throw invalidRequest(`the kind of a credential must be service or user, got "${String(kind).slice(0, 64)}"`);
      const length = label.trim() === "" ? 0 : label.length;
      if (length === 0 || length > 128)
        throw invalidRequest(`label must have 1 to 128 characters, got ${length}`, "labelLength");
      if (kind === "user" && (redirectUris.length === 0 || redirectUris.length > MOST_REDIRECTS))
        throw invalidRequest(
          `a credential of kind user needs 1 to ${MOST_REDIRECTS} redirect addresses`,
          "redirectsNeeded",
        );
      if (kind === "service" && redirectUris.length > 0)
        throw invalidRequest("a credential of kind service cannot have redirect addresses", "redirectsUnused");
      if ((await ofUser(user)).length >= MOST_CREDENTIALS) throw tooMany();
      const secret = secrets.generate();
      const credential: StoredCredential = {
        clientId: `${PREFIX}${newId(clock, random)}`,
        kind,
        label: label.trim(),
        userName: user.name,
        userId: user.id,
        redirectUris: redirectUris.map(checkRedirectUri),
        secretHash: await secrets.hash(secret, "generated"),
        createdAt: clock.now(),
      };
      await credentials.insert(credential.clientId, credential);
      // Others may have been created since the first count. Of those that exceed the limit together, none stays.
      if ((await ofUser(user)).length > MOST_CREDENTIALS) {
        await credentials.delete(credential.clientId);
        throw tooMany();
      }
      return { credential: view(credential), secret };
    },

    ofUser: async (user) => (await ofUser(user)).map(view),

    async get(clientId) {
      const credential = await credentials.get(clientId);
      return credential && view(credential);
    },

    async delete(user, clientId) {
      const credential = await credentials.get(clientId);
      // A credential of another user is reported as not found, so that nothing is revealed about it.
      if (credential?.userId !== user.id || !(await credentials.delete(clientId)))
        throw new OAuthError("not_found", `credential ${clientId} does not exist`, { refusal: "credentialNotFound" });
    },

    async deleteAllOf(user) {
      await Promise.all((await ofUser(user)).map(({ clientId }) => credentials.delete(clientId)));
    },

    async authenticate(clientId, secret) {
      const credential = await credentials.get(clientId);
      if (!(await secrets.matches(secret, credential?.secretHash ?? null, "generated")) || !credential) return null;
      const user = await activeUser(credential);
      return user && { credential: view(credential), user };
    },

    async userOf(clientId, userId) {
      const credential = await credentials.get(clientId);
      return credential?.userId === userId ? activeUser(credential) : null;
    },
  };
}
