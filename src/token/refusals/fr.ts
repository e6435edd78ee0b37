import type { Refusals } from "./en.js";

export const fr: Refusals = {
  formExpired: "Ce formulaire a expiré. Rouvrez-le et réessayez.",
  sessionEnded: "Votre session est terminée. Reconnectez-vous.",
  signInExpired: "Cette connexion a expiré ou a commencé dans un autre navigateur. Recommencez depuis l’application.",
  tooManyAttempts: "Trop de tentatives infructueuses. Réessayez {when}.",
  tooManySignIns: "Trop de connexions ont été commencées depuis cette adresse. Réessayez {when}.",
  wrongPassword: "Le mot de passe actuel est incorrect.",
  passwordsDiffer: "Les deux nouveaux mots de passe ne sont pas identiques.",
  passwordLength: "Le mot de passe doit avoir de 10 à 256 caractères.",
  labelLength: "Le libellé doit avoir de 1 à 128 caractères.",
  redirectsNeeded: "Un compte d’utilisateur a besoin de 1 à 10 adresses de redirection.",
  redirectsUnused: "Un compte de service ne peut pas avoir d’adresses de redirection.",
  redirectAddress:
    "Une adresse de redirection doit être absolue, sans fragment, caractère générique ni nom d’utilisateur, et en https (http sur cette machine seulement).",
  tooManyCredentials: "Un utilisateur peut avoir au plus 50 identifiants. Supprimez-en un d’abord.",
  credentialNotFound: "Cet identifiant n’existe plus.",
  ownersOnly: "Seuls les propriétaires du serveur peuvent faire cela.",
  serverFailed: "Une erreur s’est produite sur le serveur. Son journal en indique la cause.",
  databaseUnavailable: "La base de données du serveur ne répond pas. Réessayez dans un instant.",
  requestTooLarge: "Cette requête est trop volumineuse.",
  nameLength: "Le nom et l’environnement doivent avoir chacun de 1 à 128 caractères.",
  clientIdPart:
    "La région et le nom du client doivent avoir de 1 à 64 caractères parmi A-Z a-z 0-9 . _ - et commencer par une lettre ou un chiffre.",
  servicesNeeded: "Choisissez au moins un service.",
  scopeIds:
    "Au plus 100 périmètres biométriques, chacun de 1 à 128 caractères ASCII sans espace, 4096 caractères en tout.",
  applicationNotFound: "Cette application n’existe plus.",
  clientNotFound: "Ce client n’existe plus.",
  geographyNotFound: "L’application n’a pas cette région.",
  clientExists: "L’application a déjà un client de ce nom dans cette région.",
  lastClient: "Le dernier client d’une application ne peut pas être supprimé. Supprimez plutôt l’application.",
  scopeNotBound: "Plus aucune application de ce serveur n’est liée à ce périmètre.",
  profileNotFound: "Ce profil n’existe pas dans ce périmètre.",
  sessionNotFound: "Cette session n’existe pas dans ce périmètre.",
  referenceLength: "La référence doit avoir au plus 256 caractères.",
};
