import type { Refusals } from "./en.js";

export const es: Refusals = {
  formExpired: "Este formulario ha caducado. Ábralo de nuevo e inténtelo otra vez.",
  sessionEnded: "Su sesión ha terminado. Inicie sesión de nuevo.",
  signInExpired: "Este inicio de sesión ha caducado o empezó en otro navegador. Empiece de nuevo desde la aplicación.",
  tooManyAttempts: "Demasiados intentos fallidos. Inténtelo de nuevo {when}.",
  tooManySignIns: "Se han iniciado demasiadas sesiones desde esta dirección. Inténtelo de nuevo {when}.",
  wrongPassword: "La contraseña actual es incorrecta.",
  passwordsDiffer: "Las dos contraseñas nuevas no son iguales.",
  passwordLength: "La contraseña debe tener de 10 a 256 caracteres.",
  labelLength: "La etiqueta debe tener de 1 a 128 caracteres.",
  redirectsNeeded: "Una cuenta de usuario necesita de 1 a 10 direcciones de redirección.",
  redirectsUnused: "Una cuenta de servicio no puede tener direcciones de redirección.",
  redirectAddress:
    "Una dirección de redirección debe ser absoluta, sin fragmento, comodín ni nombre de usuario, y https (http solo en este equipo).",
  tooManyCredentials: "Un usuario puede tener como máximo 50 credenciales. Elimine una primero.",
  credentialNotFound: "Esta credencial ya no existe.",
  ownersOnly: "Solo los propietarios del servidor pueden hacer esto.",
  serverFailed: "Se ha producido un error en el servidor. La causa está en su registro.",
  databaseUnavailable: "La base de datos del servidor no responde. Inténtelo de nuevo en un momento.",
  requestTooLarge: "Esta petición es demasiado grande.",
  nameLength: "El nombre y el entorno deben tener de 1 a 128 caracteres cada uno.",
  clientIdPart:
    "La región y el nombre del cliente deben tener de 1 a 64 caracteres de A-Z a-z 0-9 . _ - y empezar por una letra o un dígito.",
  servicesNeeded: "Elija al menos un servicio.",
  scopeIds:
    "Como máximo 100 ámbitos biométricos, cada uno de 1 a 128 caracteres ASCII sin espacios, 4096 caracteres en total.",
  applicationNotFound: "Esta aplicación ya no existe.",
  clientNotFound: "Este cliente ya no existe.",
  geographyNotFound: "La aplicación no tiene esta región.",
  clientExists: "La aplicación ya tiene un cliente con este nombre en esta región.",
  lastClient: "El último cliente de una aplicación no se puede eliminar. Elimine la aplicación en su lugar.",
  scopeNotBound: "Ninguna aplicación de este servidor está ya vinculada a este ámbito.",
  profileNotFound: "Este perfil no existe en este ámbito.",
  sessionNotFound: "Esta sesión no existe en este ámbito.",
  referenceLength: "La referencia debe tener como máximo 256 caracteres.",
};
