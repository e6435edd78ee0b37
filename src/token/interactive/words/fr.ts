import { fr as refusals } from "../../refusals/fr.js";
import type { Words } from "./en.js";

export const fr: Words = {
  locale: "fr",
  roles: { owner: "propriétaire", member: "membre" },
  operatorView: "la vue de l’exploitant",

  signIn: {
    title: "Se connecter",
    goingOnTo: "Pour aller vers",
    name: "Nom d’utilisateur",
    password: "Mot de passe",
    action: "Se connecter",
    wrong: "Le nom d’utilisateur ou le mot de passe est faux.",
  },

  consent: {
    title: "Autoriser l’accès",
    asked:
      "Une application demande à utiliser l’interface de gestion (platform-api) en votre nom pendant une heure, avec vos droits.",
    application: "Nom de l’application",
    user: "Votre nom",
    target: "Vous irez vers",
    allow: "Autoriser",
    deny: "Refuser",
  },

  profile: {
    title: "Profil",
    signedInAs: "Connecté :",
    operatorView: "Vue de l’exploitant",
    signOut: "Se déconnecter",
    credentials: "Vos identifiants",
    credentialsNote: "Pour les programmes qui utilisent l’interface de gestion en votre nom.",
    none: "Aucun pour l’instant.",
    kinds: { service: "compte de service", user: "compte d’utilisateur" },
    delete: "Supprimer",
    deleteOf: (label) => `Supprimer ${label}`,
    deleteNote: "Les programmes qui l’utilisent ne pourront plus obtenir de jetons. C’est irréversible.",
    deleteYes: "Supprimer pour de bon",
    newCredential: "Nouvel identifiant",
    label: "Libellé",
    use: "Usage",
    service: "Compte de service (identifiants de client)",
    user: "Compte d’utilisateur (code d’autorisation)",
    redirectUris: "Adresses de retour, une par ligne (compte d’utilisateur)",
    create: "Créer",
    secretOnce: "Gardez ce secret maintenant : il ne sera plus montré.",
    clientId: "ID du client",
    clientSecret: "Secret du client",
  },

  password: {
    heading: "Changer votre mot de passe",
    note: "Au moins 10 caractères. Les autres navigateurs sont déconnectés, et les jetons en votre nom prennent fin.",
    current: "Mot de passe actuel",
    chosen: "Nouveau mot de passe",
    repeated: "Nouveau mot de passe, encore une fois",
    action: "Changer le mot de passe",
    changed:
      "Votre mot de passe est changé. Les autres navigateurs sont déconnectés, et les jetons en votre nom ont pris fin.",
  },

  error: {
    title: "Cela n’a pas marché",
    again: "Rouvrir le formulaire",
    failed: "Le serveur a échoué.",
    refused:
      "Cette requête ne peut pas recevoir de réponse. Dites-le à ceux qui exploitent l’application d’où vous venez :",
  },

  refusals,
};
