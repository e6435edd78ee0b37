/** Sign-in, consent and profile in English. Every other language has the same keys. */
import { en as refusals } from "../../refusals/en.js";
import type { Role } from "../../users.js";

export const en = {
  locale: "en",
  roles: { owner: "owner", member: "member" } as Readonly<Record<Role, string>>,
  operatorView: "the operator view",

  signIn: {
    title: "Sign in",
    goingOnTo: "Continue to",
    name: "User name",
    password: "Password",
    action: "Sign in",
    wrong: "The user name or the password is wrong.",
  },

  consent: {
    title: "Allow access",
    asked:
      "An application asks to use the management interface (platform-api) on your behalf for one hour, with your permissions.",
    may: {
      owner:
        "The application may then do all that you may do as an owner: see sessions and profiles, erase voiceprints, and manage applications, users and keys.",
      member: "The application may then see and change your credentials.",
    } as Readonly<Record<Role, string>>,
    application: "Application",
    user: "Your name",
    target: "Continue to",
    allow: "Allow",
    deny: "Deny",
  },

  profile: {
    title: "Profile",
    signedInAs: "Signed in as",
    operatorView: "Operator view",
    signOut: "Sign out",
    credentials: "Your credentials",
    credentialsNote: "For programs that use the management interface on your behalf.",
    none: "None yet.",
    kinds: { service: "service account", user: "user account" },
    delete: "Delete",
    deleteOf: (label: string) => `Delete ${label}`,
    deleteNote: "Programs that use it can no longer get tokens. This cannot be undone.",
    deleteYes: "Delete for good",
    newCredential: "New credential",
    label: "Label",
    use: "Use",
    service: "Service account (client credentials)",
    user: "User account (authorization code)",
    redirectUris: "Redirect addresses, one on each line (user account)",
    create: "Create",
    secretOnce: "Save this secret now. It is not shown again.",
    clientId: "Client ID",
    clientSecret: "Client secret",
  },

  password: {
    heading: "Change your password",
    note: "At least 10 characters. Other browsers are signed out, and your tokens end.",
    current: "Current password",
    chosen: "New password",
    repeated: "New password again",
    action: "Change password",
    changed: "Your password was changed. Other browsers are signed out, and your tokens have ended.",
  },

  error: {
    title: "Something went wrong",
    again: "Open the form again",
    failed: "The server had an error.",
    refused: "This request cannot be answered. Tell the operator of the application that sent you here:",
  },

  refusals,
};

export type Words = typeof en;
