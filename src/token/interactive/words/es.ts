import { es as refusals } from "../../refusals/es.js";
import type { Words } from "./en.js";

export const es: Words = {
  locale: "es",
  roles: { owner: "propietario", member: "miembro" },
  operatorView: "la vista del operador",

  signIn: {
    title: "Iniciar sesión",
    goingOnTo: "Continuar en",
    name: "Nombre de usuario",
    password: "Contraseña",
    action: "Iniciar sesión",
    wrong: "El nombre de usuario o la contraseña son incorrectos.",
  },

  consent: {
    title: "Permitir el acceso",
    asked:
      "Una aplicación pide usar la interfaz de administración (platform-api) en su nombre durante una hora, con sus permisos.",
    may: {
      owner:
        "La aplicación podrá entonces hacer todo lo que usted puede hacer como propietario: ver sesiones y perfiles, borrar huellas de voz y administrar aplicaciones, usuarios y claves.",
      member: "La aplicación podrá entonces ver y cambiar sus credenciales.",
    },
    application: "Aplicación",
    user: "Su nombre",
    target: "Continuar en",
    allow: "Permitir",
    deny: "Denegar",
  },

  profile: {
    title: "Perfil",
    signedInAs: "Sesión de",
    operatorView: "Vista del operador",
    signOut: "Cerrar sesión",
    credentials: "Sus credenciales",
    credentialsNote: "Para programas que usan la interfaz de administración en su nombre.",
    none: "Todavía ninguna.",
    kinds: { service: "cuenta de servicio", user: "cuenta de usuario" },
    delete: "Eliminar",
    deleteOf: (label) => `Eliminar ${label}`,
    deleteNote: "Los programas que la usan ya no podrán obtener tokens. No se puede deshacer.",
    deleteYes: "Eliminar para siempre",
    newCredential: "Nueva credencial",
    label: "Etiqueta",
    use: "Uso",
    service: "Cuenta de servicio (credenciales de cliente)",
    user: "Cuenta de usuario (código de autorización)",
    redirectUris: "Direcciones de redirección, una por línea (cuenta de usuario)",
    create: "Crear",
    secretOnce: "Guarde este secreto ahora: no se volverá a mostrar.",
    clientId: "ID de cliente",
    clientSecret: "Secreto de cliente",
  },

  password: {
    heading: "Cambiar su contraseña",
    note: "Al menos 10 caracteres. En los demás navegadores se cierra la sesión, y sus tokens se revocan.",
    current: "Contraseña actual",
    chosen: "Contraseña nueva",
    repeated: "Repita la contraseña nueva",
    action: "Cambiar contraseña",
    changed:
      "Se ha cambiado su contraseña. En los demás navegadores se ha cerrado la sesión, y sus tokens se han revocado.",
  },

  error: {
    title: "Algo ha fallado",
    again: "Abrir de nuevo el formulario",
    failed: "Se ha producido un error en el servidor.",
    refused:
      "No se puede responder a esta petición. Comuníquelo al responsable de la aplicación desde la que ha venido:",
  },

  refusals,
};
