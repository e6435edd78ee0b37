import { throttled } from "./client-credentials.js";
import { OAuthError } from "./errors.js";
import type { TokenService } from "./service.js";
import type { User } from "./users.js";

/**
 * Changes the password of a user who knows the current one. Signs out every browser and ends every token except those of `keptGrant`;
 * the caller signs the requesting browser in again.
 */
export async function changeOwnPassword(
  { users, throttle, audit }: Pick<TokenService, "users" | "throttle" | "audit">,
  { name }: User,
  change: { readonly current: string; readonly password: string },
  address: string,
  keptGrant?: string,
): Promise<User> {
  const known = await throttled(throttle, `user ${name}`, address, () => users.authenticate(name, change.current), {
    countFirst: true,
  });
  if (!known) {
    audit({ event: "sign-in-refused", user: name, address });
    throw new OAuthError("access_denied", "The current password is wrong.", { refusal: "wrongPassword" });
  }
  return users.change(name, { password: change.password }, keptGrant);
}
