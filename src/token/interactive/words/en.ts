/** Sign-in, consent and profile in English: the shape that every other language fills. */
import type { Refusal } from "../../errors.js";
import type { Role } from "../../users.js";

export const en = {
  locale: "en",
  roles: { owner: "owner", member: "member" } as Readonly<Record<Role, string>>,
  operatorView: "the operator view",

  signIn: {
    title: "Sign in",
    goingOnTo: "Going on to",
    name: "User name",
    password: "Password",
    action: "Sign in",
    wrong: "The user name or the password is wrong.",
  },

  consent: {
    title: "Allow access",
    asked:
      "An application asks to use the management interface (platform-api) in your name for one hour, with your permissions.",
    application: "Application",
    user: "Your name",
    target: "You go on to",
    allow: "Allow",
    deny: "Deny",
  },

  profile: {
    title: "Profile",
    signedInAs: "Signed in as",
    operatorView: "Operator view",
    signOut: "Sign out",
    credentials: "Your credentials",
    credentialsNote: "For programs that use the management interface in your name.",
    none: "None yet.",
    kinds: { service: "service account", user: "user account" },
    delete: "Delete",
    deleteOf: (label: string) => `Delete ${label}`,
    newCredential: "New credential",
    label: "Label",
    use: "Use",
    service: "Service account (client credentials)",
    user: "User account (authorization code)",
    redirectUris: "Redirect addresses, one on each line (user account)",
    create: "Create",
    secretOnce: "Keep this secret now: it is not shown again.",
    clientId: "Client ID",
    clientSecret: "Client secret",
  },

  password: {
    heading: "Change your password",
    note: "At least 10 characters. Other browsers are signed out, and tokens in your name end.",
    current: "Current password",
    chosen: "New password",
    repeated: "New password again",
    action: "Change password",
    changed: "Your password is changed. Other browsers are signed out, and tokens in your name have ended.",
  },

  error: {
    title: "Something went wrong",
    failed: "The server failed.",
    refused: "This request cannot be answered. Tell those who run the application that sent you here:",
  },

  refusals: {
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
  } satisfies Record<Refusal, string> as Readonly<Record<Refusal, string>>,
};

export type Words = typeof en;
