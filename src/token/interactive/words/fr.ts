import { fr as refusals } from "../../refusals/fr.js";
import type { Words } from "./en.js";

export const fr: Words = {
  locale: "fr",
  roles: { owner: "propriétaire", member: "membre" },
  operatorView: "la vue opérateur",

  signIn: {
    title: "Se connecter",
    goingOnTo: "Continuer vers",
    name: "Nom d’utilisateur",
    password: "Mot de passe",
    action: "Se connecter",
    wrong: "Le nom d’utilisateur ou le mot de passe est incorrect.",
  },

  consent: {
    title: "Autoriser l’accès",
    asked:
      "Une application demande à utiliser l’interface de gestion (platform-api) en votre nom pendant une heure, avec vos droits.",
    may: {
      owner:
        "L’application pourra alors faire tout ce que vous pouvez faire en tant que propriétaire : voir les sessions et les profils, effacer des empreintes vocales et gérer les applications, les utilisateurs et les clés.",
      member: "L’application pourra alors voir et modifier vos identifiants.",
    },
    application: "Application",
    user: "Votre nom",
    target: "Continuer vers",
    allow: "Autoriser",
    deny: "Refuser",
  },

  profile: {
    title: "Profil",
    signedInAs: "Connecté en tant que",
    operatorView: "Vue opérateur",
    signOut: "Se déconnecter",
    credentials: "Vos identifiants",
    credentialsNote: "Pour les programmes qui utilisent l’interface de gestion en votre nom.",
    none: "Aucun pour l’instant.",
    kinds: { service: "compte de service", user: "compte d’utilisateur" },
    delete: "Supprimer",
    deleteOf: (label) => `Supprimer ${label}`,
    deleteNote: "Les programmes qui l’utilisent ne pourront plus obtenir de jetons. C’est irréversible.",
    deleteYes: "Supprimer définitivement",
    newCredential: "Nouvel identifiant",
    label: "Libellé",
    use: "Usage",
    service: "Compte de service (identifiants de client)",
    user: "Compte d’utilisateur (code d’autorisation)",
    redirectUris: "Adresses de redirection, une par ligne (compte d’utilisateur)",
    create: "Créer",
    secretOnce: "Enregistrez ce secret maintenant : il ne sera plus affiché.",
    clientId: "ID du client",
    clientSecret: "Secret du client",
  },

  password: {
    heading: "Changer votre mot de passe",
    note: "Au moins 10 caractères. Les autres navigateurs sont déconnectés, et vos jetons sont révoqués.",
    current: "Mot de passe actuel",
    chosen: "Nouveau mot de passe",
    repeated: "Répétez le nouveau mot de passe",
    action: "Changer le mot de passe",
    changed: "Votre mot de passe a été changé. Les autres navigateurs sont déconnectés, et vos jetons sont révoqués.",
  },

  error: {
    title: "Une erreur est survenue",
    again: "Rouvrir le formulaire",
    failed: "Une erreur s’est produite sur le serveur.",
    refused: "Impossible de répondre à cette requête. Signalez-le aux responsables de l’application d’où vous venez :",
  },

  refusals,
};
