import { de as refusals } from "../../refusals/de.js";
import type { Words } from "./en.js";

export const de: Words = {
  locale: "de",
  roles: { owner: "Eigentümer", member: "Mitglied" },
  operatorView: "die Betriebsansicht",

  signIn: {
    title: "Anmelden",
    goingOnTo: "Weiter geht es zu",
    name: "Benutzername",
    password: "Passwort",
    action: "Anmelden",
    wrong: "Der Benutzername oder das Passwort ist falsch.",
  },

  consent: {
    title: "Zugriff erlauben",
    asked:
      "Eine Anwendung möchte die Verwaltungsschnittstelle (platform-api) eine Stunde lang in Ihrem Namen und mit Ihren Rechten benutzen.",
    application: "Anwendung",
    user: "Ihr Name",
    target: "Weiter geht es zu",
    allow: "Erlauben",
    deny: "Ablehnen",
  },

  profile: {
    title: "Profil",
    signedInAs: "Angemeldet als",
    operatorView: "Betriebsansicht",
    signOut: "Abmelden",
    credentials: "Ihre Zugangsdaten",
    credentialsNote: "Für Programme, die die Verwaltungsschnittstelle in Ihrem Namen benutzen.",
    none: "Noch keine.",
    kinds: { service: "Dienstkonto", user: "Benutzerkonto" },
    delete: "Löschen",
    deleteOf: (label) => `${label} löschen`,
    deleteNote: "Programme, die sie verwenden, erhalten keine Tokens mehr. Das lässt sich nicht rückgängig machen.",
    deleteYes: "Endgültig löschen",
    newCredential: "Neue Zugangsdaten",
    label: "Bezeichnung",
    use: "Verwendung",
    service: "Dienstkonto (Client Credentials)",
    user: "Benutzerkonto (Authorization Code)",
    redirectUris: "Adressen für die Rückkehr, eine je Zeile (Benutzerkonto)",
    create: "Anlegen",
    secretOnce: "Bewahren Sie dieses Geheimnis jetzt auf: Es wird nicht noch einmal gezeigt.",
    clientId: "Client-ID",
    clientSecret: "Client-Geheimnis",
  },

  password: {
    heading: "Passwort ändern",
    note: "Mindestens 10 Zeichen. Andere Browser werden abgemeldet, und Tokens in Ihrem Namen enden.",
    current: "Bisheriges Passwort",
    chosen: "Neues Passwort",
    repeated: "Neues Passwort noch einmal",
    action: "Passwort ändern",
    changed: "Ihr Passwort ist geändert. Andere Browser sind abgemeldet, und Tokens in Ihrem Namen sind beendet.",
  },

  error: {
    title: "Das ging nicht",
    again: "Das Formular neu öffnen",
    failed: "Der Server hat versagt.",
    refused:
      "Diese Anfrage kann nicht beantwortet werden. Sagen Sie es denen, die die Anwendung betreiben, von der Sie kommen:",
  },

  refusals,
};
