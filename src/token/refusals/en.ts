/**
 * What people are refused, on sign-in and profile and in the operator view. The name stands in the answer as `refusal`; pages say it in
 * their reader's language. English is the shape that every other language fills.
 */
export const en = {
  formExpired: "This form has expired. Reload the page and try again.",
  sessionEnded: "Your session has ended. Sign in again.",
  signInExpired: "This sign-in has expired or was started in another browser. Start again from the application.",
  tooManyAttempts: "Too many failed attempts. Try again later.",
  wrongPassword: "The current password is wrong.",
  passwordsDiffer: "The new password and its repetition differ.",
  passwordLength: "The password must have 10 to 256 characters.",
  labelLength: "The label must have 1 to 128 characters.",
  redirectsNeeded: "A user account needs 1 to 10 redirect addresses.",
  redirectsUnused: "A service account cannot have redirect addresses.",
  redirectAddress:
    "A redirect address must be absolute, without fragment, wildcard or user name, and https (http on this machine alone).",
  tooManyCredentials: "A user can have at most 50 credentials. Delete one first.",
  credentialNotFound: "This credential does not exist any more.",
  ownersOnly: "This is for owners of the box alone.",
  serverFailed: "The box failed. Its log says why.",
  requestTooLarge: "This is too much for one request.",
  nameLength: "Name and environment must have 1 to 128 characters each.",
  clientIdPart:
    "Geography and client name must have 1 to 64 characters of A-Z a-z 0-9 . _ - and begin with a letter or digit.",
  servicesNeeded: "Choose at least one service.",
  scopeIds: "At most 100 biometric scopes, each of 1 to 128 ASCII characters without spaces, 4,096 characters in all.",
  applicationNotFound: "This application does not exist any more.",
  clientNotFound: "This client does not exist any more.",
  geographyNotFound: "The application does not have this geography.",
  clientExists: "The application already has a client of this name in this geography.",
  lastClient: "The last client of an application cannot be deleted. Delete the application instead.",
  scopeNotBound: "No application of this box is bound to this scope any more.",
  profileNotFound: "This profile does not exist in this scope.",
  sessionNotFound: "This session does not exist in this scope.",
  referenceLength: "The reference must have at most 256 characters.",
};

export type Refusals = typeof en;
export type Refusal = keyof Refusals;
