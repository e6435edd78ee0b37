import { de as refusals } from "../../refusals/de.js";
import type { Words } from "./en.js";

export const de: Words = {
  locale: "de",
  roles: { owner: "Eigentümer", member: "Mitglied" },
  operatorView: "die Betriebsansicht",

  signIn: {
    title: "Anmelden",
    goingOnTo: "Weiter zu",
    name: "Benutzername",
    password: "Passwort",
    action: "Anmelden",
    wrong: "Der Benutzername oder das Passwort ist falsch.",
  },

  consent: {
    title: "Zugriff erlauben",
    asked:
      "Eine Anwendung möchte die Verwaltungsschnittstelle (platform-api) eine Stunde lang in Ihrem Namen und mit Ihren Rechten benutzen.",
    may: {
      owner:
        "Die Anwendung darf dann alles, was Sie als Eigentümer dürfen: Sitzungen und Profile ansehen, Stimmabdrücke löschen und Anwendungen, Benutzer und Schlüssel verwalten.",
      member: "Die Anwendung darf dann Ihre Zugangsdaten ansehen und ändern.",
    },
    application: "Anwendung",
    user: "Ihr Name",
    target: "Weiter zu",
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
    redirectUris: "Weiterleitungsadressen, eine je Zeile (Benutzerkonto)",
    create: "Anlegen",
    secretOnce: "Speichern Sie dieses Geheimnis jetzt: Es wird nicht noch einmal angezeigt.",
    clientId: "Client-ID",
    clientSecret: "Client-Geheimnis",
  },

  password: {
    heading: "Passwort ändern",
    note: "Mindestens 10 Zeichen. Andere Browser werden abgemeldet, und Ihre Tokens werden ungültig.",
    current: "Aktuelles Passwort",
    chosen: "Neues Passwort",
    repeated: "Neues Passwort noch einmal",
    action: "Passwort ändern",
    changed: "Ihr Passwort ist geändert. Andere Browser sind abgemeldet, und Ihre Tokens sind ungültig.",
  },

  error: {
    title: "Etwas ist schiefgegangen",
    again: "Das Formular neu öffnen",
    failed: "Auf dem Server ist ein Fehler aufgetreten.",
    refused:
      "Diese Anfrage kann nicht beantwortet werden. Melden Sie dies dem Betreiber der Anwendung, von der Sie kommen:",
  },

  refusals,
};
