import type { Refusals } from "./en.js";

export const de: Refusals = {
  formExpired: "Dieses Formular ist abgelaufen. Öffnen Sie es neu und versuchen Sie es noch einmal.",
  sessionEnded: "Ihre Sitzung ist beendet. Melden Sie sich noch einmal an.",
  signInExpired:
    "Diese Anmeldung ist abgelaufen oder begann in einem anderen Browser. Beginnen Sie noch einmal bei der Anwendung.",
  tooManyAttempts: "Zu viele Fehlversuche. Versuchen Sie es {when} noch einmal.",
  tooManySignIns: "Von dieser Adresse wurden zu viele Anmeldungen begonnen. Versuchen Sie es {when} noch einmal.",
  wrongPassword: "Das aktuelle Passwort ist falsch.",
  passwordsDiffer: "Die beiden neuen Passwörter stimmen nicht überein.",
  passwordLength: "Das Passwort muss 10 bis 256 Zeichen haben.",
  labelLength: "Die Bezeichnung muss 1 bis 128 Zeichen haben.",
  redirectsNeeded: "Ein Benutzerkonto braucht 1 bis 10 Weiterleitungsadressen.",
  redirectsUnused: "Ein Dienstkonto kann keine Weiterleitungsadressen haben.",
  redirectAddress:
    "Eine Weiterleitungsadresse muss vollständig sein, ohne Fragment, Platzhalter oder Benutzernamen, und mit https beginnen (http nur auf diesem Rechner).",
  tooManyCredentials: "Ein Benutzer kann höchstens 50 Zugangsdaten haben. Löschen Sie zuerst welche.",
  credentialNotFound: "Diese Zugangsdaten gibt es nicht mehr.",
  ownersOnly: "Das dürfen nur Eigentümer der Box.",
  serverFailed: "In der Box ist ein Fehler aufgetreten. Die Ursache steht in ihrem Protokoll.",
  databaseUnavailable: "Die Datenbank der Box antwortet nicht. Versuchen Sie es gleich noch einmal.",
  requestTooLarge: "Diese Anfrage ist zu groß.",
  nameLength: "Bezeichnung und Umgebung müssen je 1 bis 128 Zeichen haben.",
  clientIdPart:
    "Region und Name des Clients müssen 1 bis 64 Zeichen aus A-Z a-z 0-9 . _ - haben und mit einem Buchstaben oder einer Ziffer beginnen.",
  servicesNeeded: "Wählen Sie mindestens einen Dienst.",
  scopeIds:
    "Höchstens 100 biometrische Bereiche, jeder aus 1 bis 128 ASCII-Zeichen ohne Leerzeichen, zusammen höchstens 4096 Zeichen.",
  applicationNotFound: "Diese Anwendung gibt es nicht mehr.",
  clientNotFound: "Diesen Client gibt es nicht mehr.",
  geographyNotFound: "Die Anwendung hat diese Region nicht.",
  clientExists: "Die Anwendung hat in dieser Region schon einen Client dieses Namens.",
  lastClient: "Der letzte Client einer Anwendung kann nicht gelöscht werden. Löschen Sie stattdessen die Anwendung.",
  scopeNotBound: "An diesen Bereich ist keine Anwendung dieser Box mehr gebunden.",
  profileNotFound: "Dieses Profil gibt es in diesem Bereich nicht.",
  sessionNotFound: "Diese Sitzung gibt es in diesem Bereich nicht.",
  referenceLength: "Der Verweis darf höchstens 256 Zeichen haben.",
};
