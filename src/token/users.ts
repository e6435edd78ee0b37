import { newId } from "./access-token.js";
import type { Random } from "./clock.js";
import { collection, type RecordParts } from "./documents.js";
import { invalidRequest, OAuthError } from "./errors.js";
import { endGrantsOf } from "./grants.js";

/** Owners manage applications, clients, secrets and registrations; members have their own credentials only. */
export type Role = "owner" | "member";

interface StoredUser {
  readonly id: string;
  readonly name: string;
  readonly role: Role;
  readonly passwordHash: string;
  /** Differs for each password. Sessions and tokens that name another are invalid: times are not compared, because clocks are set back. */
  readonly passwordSetAt: number;
  readonly disabled: boolean;
  readonly createdAt: number;
}

/** A user, without the password hash. */
export type User = Omit<StoredUser, "passwordHash">;

/** What can be changed about a user. */
export interface UserChange {
  readonly role?: Role;
  readonly disabled?: boolean;
  readonly password?: string;
}

/** People who sign in. */
export interface Users {
  create(user: { name: string; role: Role; password: string }): Promise<User>;
  /** `null` when there is no user with this name, or its id differs from `id`. */
  find(name: string, id?: string): Promise<User | null>;
  /** Reads all users: a box has few. */
  byId(id: string): Promise<User | null>;
  list(): Promise<User[]>;
  /** A new password ends older sessions, codes and tokens, except those of `keptGrant`, whose holder knew the old password. */
  change(name: string, change: UserChange, keptGrant?: string): Promise<User>;
  delete(name: string): Promise<void>;
  /**
   * Runs a change that takes an owner away; refuses it for the last enabled owner, because without an owner nobody could
   * create another over the network. One at a time on all replicas: two owners could demote each other at once.
   */
  keepingAnOwner<T>(name: string, change: () => Promise<T>): Promise<T>;
  authenticate(name: string, password: string): Promise<User | null>;
}

const NAME = /^[a-z0-9][a-z0-9._@+-]{0,127}$/;
const SHORTEST_PASSWORD = 10;
const LONGEST_PASSWORD = 256;

const OWNERS = "owners";
/** An older lock was left by a box that has died: even a slow database has answered by then. */
const LONGEST_CHANGE_MS = 60_000;

/** A generated password, for users who choose none: 144 random bits. */
export const generatePassword = (random: Random): string => Buffer.from(random.bytes(18)).toString("base64url");

export const normalName = (name: string): string => name.trim().toLowerCase();

function checkPassword(password: string): string {
  if (password.length < SHORTEST_PASSWORD || password.length > LONGEST_PASSWORD)
    throw invalidRequest(
      `the password must have ${SHORTEST_PASSWORD} to ${LONGEST_PASSWORD} characters, got ${password.length}`,
      "passwordLength",
    );
  return password;
}

const differentFrom = (before: number, now: number): number => (now === before ? now + 1 : now);

const view = ({ passwordHash: _, ...user }: StoredUser): User => user;

export function createUsers({ documents, clock, random, secrets }: RecordParts): Users {
  const users = collection<StoredUser>(documents, "token.users");
  const locks = collection<object>(documents, "token.locks");

  return {
    async keepingAnOwner(name, change) {
      if (!(await locks.insert(OWNERS, {}, clock.now() + LONGEST_CHANGE_MS)))
        throw new OAuthError("conflict", "another owner is being changed; try again");
      try {
        const owners = (await users.list()).filter((user) => user.role === "owner" && !user.disabled);
        if (owners.length === 1 && owners[0]!.name === normalName(name))
          throw new OAuthError("conflict", `${name} is the last owner; make another user an owner first`);
        return await change();
      } finally {
        await locks.delete(OWNERS);
      }
    },

    async create({ name, role, password }) {
      const normal = normalName(name);
      if (!NAME.test(normal))
        throw invalidRequest(`the user name must have 1 to 128 characters of a-z 0-9 . _ @ + -, got "${normal}"`);
      if (role !== "owner" && role !== "member")
        throw invalidRequest(`role must be owner or member, got ${String(role)}`);
      const user: StoredUser = {
        id: newId(clock, random),
        name: normal,
        role,
        passwordHash: await secrets.hash(checkPassword(password), "chosen"),
        passwordSetAt: clock.now(),
        disabled: false,
        createdAt: clock.now(),
      };
      if (!(await users.insert(normal, user))) throw new OAuthError("conflict", "a user with this name already exists");
      return view(user);
    },

    async find(name, id) {
      const user = await users.get(normalName(name));
      return user && (id === undefined || user.id === id) ? view(user) : null;
    },

    async byId(id) {
      const user = (await users.list()).find((one) => one.id === id);
      return user ? view(user) : null;
    },

    list: async () => (await users.list()).map(view).sort((a, b) => a.name.localeCompare(b.name)),

    async change(name, { role, disabled, password }, keptGrant) {
      if (role !== undefined && role !== "owner" && role !== "member")
        throw invalidRequest(`role must be owner or member, got ${String(role)}`);
      const passwordHash = password === undefined ? undefined : await secrets.hash(checkPassword(password), "chosen");
      const before = passwordHash && (await users.get(normalName(name)));
      // Before the write, because a box that is killed right after it could not; after it, for those made in between.
      if (before) await endGrantsOf(documents, before.id, { kept: keptGrant });
      const changed = await users.update(normalName(name), (user) => {
        if (!user) throw new OAuthError("not_found", `user ${name} does not exist`);
        return {
          ...user,
          ...(role && { role }),
          ...(disabled !== undefined && { disabled }),
          ...(passwordHash && { passwordHash, passwordSetAt: differentFrom(user.passwordSetAt, clock.now()) }),
        };
      });
      if (passwordHash) await endGrantsOf(documents, changed.id, { kept: keptGrant });
      return view(changed);
    },

    async delete(name) {
      if (!(await users.delete(normalName(name)))) throw new OAuthError("not_found", `user ${name} does not exist`);
    },

    async authenticate(name, password) {
      const user = await users.get(normalName(name));
      const matches =
        password.length <= LONGEST_PASSWORD && (await secrets.matches(password, user?.passwordHash ?? null, "chosen"));
      return matches && user && !user.disabled ? view(user) : null;
    },
  };
}
