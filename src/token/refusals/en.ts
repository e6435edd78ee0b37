/**
 * Refusals shown to people on sign-in, profile and operator view. The key is sent as `refusal` in the response; pages show it in the
 * reader's language, with the time of the answer's Retry-After for `{when}`. Every other language has the same keys.
 */
export const en = {
  formExpired: "This form has expired. Open it again and try once more.",
  sessionEnded: "Your session has ended. Sign in again.",
  signInExpired: "This sign-in has expired or was started in another browser. Start again from the application.",
  tooManyAttempts: "Too many failed attempts. Try again {when}.",
  tooManySignIns: "Too many sign-ins were begun from this address. Try again {when}.",
  wrongPassword: "The current password is wrong.",
  passwordsDiffer: "The two new passwords are not the same.",
  passwordLength: "The password must have 10 to 256 characters.",
  labelLength: "The label must have 1 to 128 characters.",
  redirectsNeeded: "A user account needs 1 to 10 redirect addresses.",
  redirectsUnused: "A service account cannot have redirect addresses.",
  redirectAddress:
    "A redirect address must be absolute, without fragment, wildcard or user name, and https (http only on this machine).",
  tooManyCredentials: "A user can have at most 50 credentials. Delete one first.",
  credentialNotFound: "This credential no longer exists.",
  ownersOnly: "Only owners of the box may do this.",
  serverFailed: "The box had an error. See its log for the cause.",
  databaseUnavailable: "The database of the box does not answer. Try again in a moment.",
  requestTooLarge: "This request is too large.",
  nameLength: "Name and environment must have 1 to 128 characters each.",
  clientIdPart:
    "Geography and client name must have 1 to 64 characters of A-Z a-z 0-9 . _ - and begin with a letter or digit.",
  servicesNeeded: "Choose at least one service.",
  scopeIds:
    "At most 100 biometric scopes, each of 1 to 128 ASCII characters without spaces, 4,096 characters in total.",
  applicationNotFound: "This application no longer exists.",
  clientNotFound: "This client no longer exists.",
  geographyNotFound: "The application does not have this geography.",
  clientExists: "The application already has a client with this name in this geography.",
  lastClient: "The last client of an application cannot be deleted. Delete the application instead.",
  scopeNotBound: "No application of this box is bound to this scope any longer.",
  profileNotFound: "This profile does not exist in this scope.",
  sessionNotFound: "This session does not exist in this scope.",
  referenceLength: "The reference must have at most 256 characters.",
};

export type Refusals = typeof en;
/** The name of a problem that a person can correct. */
export type Refusal = keyof Refusals;
