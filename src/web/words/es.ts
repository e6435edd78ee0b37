import type { Words } from "./en.js";

export const es: Words = {
  tagline: "Su voz, reconocida en este dispositivo.",

  modes: { enroll: "Registrar", verify: "Verificar", identify: "Identificar", people: "Voces" },
  modesLabel: "¿Qué desea hacer?",

  enroll: {
    heading: "Registrar una voz",
    name: "Nombre",
    namePlaceholder: "Por ejemplo, Ana",
    nameMissing: "Primero indique de quién es la voz: escriba un nombre.",
    hint: "Tres grabaciones cortas. Lea cada frase en voz alta, como si hablara por teléfono.",
    known: (name) => `${name} ya tiene una huella de voz. Las grabaciones nuevas se añaden a ella.`,
    unfinished: (name, done) =>
      done === 1
        ? `Hay una grabación de ${name} guardada. Continúe.`
        : `Hay ${done} grabaciones de ${name} guardadas. Continúe.`,
    steps: (done, of) => `Grabación ${Math.min(done + 1, of)} de ${of}`,
    stepsDone: (of) => `${of} de ${of} grabaciones`,
    sentences: [
      "«Mi voz es la llave que nadie puede copiar de mi bolsillo.»",
      "«En una mañana tranquila las luces del puerto se apagan una tras otra.»",
      "«Siete botellas verdes estaban sobre el muro hasta que llegó el viento del norte.»",
    ],
    taken: (left) => (left === 1 ? "Bien. Una más." : `Bien. Faltan ${left}.`),
    trained: (name) => `La huella de voz de ${name} está lista`,
    trainedMore: "Pase a «Verificar» y pruébela.",
    refused: "Esa grabación no se ha usado",
    inconsistent: "Estas grabaciones parecen de personas distintas. Grabe una más.",
  },

  verify: {
    heading: "Verificar una voz",
    hint: "Diga lo que quiera. La puntuación cambia mientras habla; tiene que llegar a la marca.",
    no: (name) => `No es ${name}`,
    score: "Puntuación",
    scoreOf: (score, needed) => `${score}, hace falta ${needed}`,
  },

  identify: {
    hint: "Se compara con todas las voces registradas en este dispositivo.",
    no: "Nadie que esté registrado aquí",
  },

  attacks: {
    heading: "¿Es una voz en vivo?",
    kinds: { synthetic: "Voz sintética", playback: "Reproducción de una grabación" },
    found: { none: "sin indicios", unsure: "no se puede saber con esta grabación", attack: "hay indicios" },
    where: (start, end) => `más fuerte de ${start} a ${end} s`,
    matches: (name: string) => `Suena como ${name}, pero puede que no sea una voz en vivo`,
    doNotTrust: "La voz coincide, pero suena artificial o reproducida. No se fíe de ella.",
  },

  people: {
    heading: "Voces en este dispositivo",
    none: "Aún no hay ninguna voz registrada.",
    loading: "La lista aparece cuando se carga el modelo de voz.",
    untrained: "sin terminar",
    enrolledOn: (day) => `registrada el ${day}`,
    speech: (value) => `${value} s de habla`,
    export: "Exportar",
    exportOf: (name) => `Exportar la huella de voz de ${name}`,
    erase: "Borrar",
    eraseOf: (name) => `Borrar la huella de voz de ${name}`,
    sure: (name) => `¿Borrar todo lo que se guarda de ${name}? No se puede deshacer.`,
    yes: "Borrar para siempre",
    no: "Conservar",
    erased: (name) => `Se han borrado los datos de ${name}.`,
    exported: (name) => `La huella de voz de ${name} está en sus descargas.`,
    aboutExport:
      "Una exportación contiene todo lo que se guarda: números que describen la voz y medidas de las grabaciones. No se guarda audio.",
  },

  whoSpeaks: "¿Quién habla?",
  anything: "Hable unos tres segundos, de lo que quiera.",
  itIs: (name) => `Es ${name}`,
  nobody: "En este dispositivo no hay ninguna voz con la que comparar. Registre una primero.",
  uncertain: "No está claro",
  uncertainMore:
    "La puntuación está demasiado cerca de la marca para decidir. Hable un poco más, en un lugar más tranquilo.",
  failed: "No se ha podido verificar",
  damaged: "Esta huella de voz está dañada. Bórrela y registre la voz de nuevo.",
  obsolete: "Esta huella de voz se hizo con otro modelo de voz. Vuelva a cargar la página o registre la voz de nuevo.",
  erasedElsewhere: "Esa voz se ha borrado en otra pestaña o ventana. Verifique de nuevo con una voz registrada.",

  record: {
    start: "Grabar",
    stop: "Parar",
    asking: "Esperando al micrófono",
    working: "Analizando la grabación",
    netSpeech: "Habla detectada",
    ofTarget: (have, want) => `${have} de ${want} s`,
    drop: "o arrastre aquí grabaciones",
    choose: "Elegir grabaciones",
  },

  meters: {
    level: "Nivel",
    snr: "Relación voz/ruido",
    clipping: "Saturación",
    clean: "ninguna",
    clipped: "demasiado alto",
  },

  pictures: { waveform: "Forma de onda de la grabación", spectrogram: "Espectrograma mel de la grabación" },

  advice: {
    ready: "Pulse el anillo y hable.",
    speak: "Hable ahora.",
    keepTalking: "Bien. Siga hablando.",
    almost: "Ya casi está.",
    closer: "Acérquese al micrófono o hable más alto.",
    away: "Demasiado alto: aléjese del micrófono.",
    quieter: "Demasiado ruido: busque un lugar más tranquilo.",
    waiting: "Siga hablando; el modelo de voz aún se está cargando.",
    loading: "Espere hasta que se cargue el modelo de voz.",
  },

  refusals: {
    TOO_SHORT: "Se ha oído muy poca habla. Hable un poco más.",
    TOO_SOFT: "Demasiado bajo. Acérquese al micrófono o hable más alto.",
    TOO_LOUD: "Demasiado alto, la grabación está saturada. Aléjese del micrófono.",
    TOO_NOISY: "Demasiado ruido. Busque un lugar más tranquilo.",
    MULTIPLE_SPEAKERS_DETECTED: "Se ha oído a más de una persona. Una sola voz, por favor.",
    INVALID_AUDIO: "Esta grabación no se puede leer.",
    ALREADY_ADDED: "Esta grabación ya se había añadido. Haga otra.",
    WRONG_PRINT_TYPE: "Esta huella de voz es para otro tipo de verificación.",
    FULL: "Esta huella de voz está completa: no puede usar más grabaciones.",
    other: "Algo ha fallado. Inténtelo otra vez.",
  },

  microphone: {
    refused:
      "El navegador no permite usar el micrófono. Permítalo para esta página (el icono junto a la dirección) y grabe de nuevo. Con archivos funciona sin él.",
    none: "No se ha encontrado ningún micrófono. Conecte uno o arrastre aquí una grabación.",
    busy: "Otro programa está usando el micrófono, o este no responde. Cierre ese programa y grabe de nuevo.",
    muted: "No llega sonido: el micrófono está silenciado. Actívelo (en el aparato, en el cable o en el sistema).",
    silent: "Apenas llega sonido. Acérquese o elija otro micrófono en el navegador.",
    unplugged: "El micrófono se ha desconectado y la grabación ha terminado. Conéctelo antes de grabar de nuevo.",
    insecure: "Los navegadores solo permiten el micrófono en páginas cargadas por https o desde este equipo.",
    other: (detail) => `No se ha podido abrir el micrófono (${detail}). Con archivos funciona sin él.`,
  },

  files: {
    unreadable: (name, why) => `No se ha podido leer ${name}: ${why}`,
    why: {
      NOT_AUDIO: "no está en un formato de audio conocido.",
      UNSUPPORTED_ENCODING: "este formato de audio no se admite. Convierta el archivo a WAV.",
      TRUNCATED: "el archivo termina demasiado pronto.",
      BAD_HEADER: "su cabecera no es válida.",
      BAD_RATE: "su frecuencia de muestreo debe ser de 4 a 192 kHz.",
      BAD_CHANNELS: "debe tener de 1 a 64 canales.",
      CORRUPT_DATA: "su sonido está dañado, o este navegador no puede decodificarlo.",
    },
    tooLong: (name) => `${name} dura más de diez minutos. Bastan unos segundos.`,
    several: "Una verificación usa un solo archivo. Se ha tomado el primero.",
    empty: (name) => `${name} no contiene sonido.`,
    busy: "Espere a que termine la grabación actual y elija los archivos de nuevo.",
  },

  model: {
    loading: (have, all) => `Cargando el modelo de voz: ${have} de ${all} MB`,
    starting: "Iniciando el modelo de voz",
    ready: "Modelo de voz listo",
    failed: (why) => `No se ha podido cargar el modelo de voz: ${why}`,
    why: {
      noAnswer: "el servidor no responde. Compruebe la red.",
      answered: (status) => `el servidor ha respondido con el estado HTTP ${status}.`,
      incomplete: "la descarga está incompleta.",
    },
    insecure:
      "Esta página solo funciona por https o en el equipo que la sirve: solo en esos casos permiten los navegadores el cifrado y el micrófono.",
    notStarted: "La página no ha podido iniciarse por completo. Vuelva a cargarla o pruebe con otro navegador.",
    retry: "Intentar otra vez",
  },

  storage: {
    full: "El almacenamiento del navegador para esta página está lleno. Borre una voz o libere espacio en este dispositivo e inténtelo de nuevo.",
    blocked:
      "El navegador no deja que esta página guarde voces. Permita los datos del sitio (cookies) o use una ventana que no sea privada e inténtelo de nuevo.",
    closed: "Se han borrado los datos de esta página, o está abierta una versión más nueva. Recargue la página.",
    unreadable:
      "Las voces de este dispositivo ya no se pueden leer, porque están dañadas o faltan sus claves. Para empezar de nuevo, borre los datos de esta página en los ajustes del navegador.",
  },

  privacy: {
    short: "Solo en este dispositivo",
    heading: "Nada sale de este dispositivo",
    what: "Su voz se graba, se mide y se compara en este navegador. Las huellas de voz se guardan aquí, cifradas; el audio no se guarda.",
    where:
      "Las voces registradas en esta página permanecen en este navegador, en este dispositivo. El servidor del que procede esta página no puede usarlas, y esta página no puede usar las voces registradas en el servidor.",
    proof: "Y puede comprobarlo:",
    locked:
      "Desde que se cargó el modelo de voz, esta página bloquea todas sus propias conexiones; el navegador lo garantiza.",
    unlocked: "En cuanto se cargue el modelo de voz, la página bloqueará todas sus propias conexiones.",
    requests: (count) => (count === 0 ? "Peticiones desde entonces: ninguna." : `Peticiones desde entonces: ${count}.`),
    online: "Desconecte la red, recargue la página y pruebe: todo sigue funcionando.",
    offline: "La red está desconectada y todo funciona.",
  },
};
