import type { Words } from "./en.js";

export const fr: Words = {
  tagline: "Votre voix, reconnue sur cet appareil.",

  modes: { enroll: "Inscrire", verify: "Vérifier", identify: "Identifier", people: "Voix" },
  modesLabel: "Que voulez-vous faire ?",

  enroll: {
    heading: "Inscrire une voix",
    name: "Nom",
    namePlaceholder: "Par exemple, Anna",
    nameMissing: "Indiquez d’abord à qui est la voix : saisissez un nom.",
    hint: "Trois enregistrements courts. Lisez chaque phrase à voix haute, comme au téléphone.",
    known: (name) => `${name} a déjà une empreinte vocale. Vos enregistrements y seront ajoutés.`,
    unfinished: (name, done) =>
      done === 1
        ? `Un enregistrement de ${name} est déjà conservé. Continuez.`
        : `${done} enregistrements de ${name} sont déjà conservés. Continuez.`,
    steps: (done, of) => `Enregistrement ${Math.min(done + 1, of)} sur ${of}`,
    stepsDone: (of) => `${of} enregistrements sur ${of}`,
    sentences: [
      "« Ma voix est la clé que personne ne peut copier dans ma poche. »",
      "« Par un matin calme, les lumières du port s’éteignent l’une après l’autre. »",
      "« Sept bouteilles vertes étaient sur le mur jusqu’à l’arrivée du vent du nord. »",
    ],
    taken: (left) => (left === 1 ? "Bien. Encore un." : `Bien. Encore ${left}.`),
    trained: (name) => `L’empreinte vocale de ${name} est prête`,
    trainedMore: "Passez à « Vérifier » pour l’essayer.",
    refused: "Cet enregistrement n’a pas été utilisé",
    inconsistent: "Ces enregistrements semblent venir de personnes différentes. Faites-en un autre.",
  },

  verify: {
    heading: "Vérifier une voix",
    hint: "Dites ce que vous voulez. Le score évolue pendant que vous parlez ; il doit atteindre le repère.",
    no: (name) => `Ce n’est pas ${name}`,
    score: "Score",
    scoreOf: (score, needed) => `${score}, il faut ${needed}`,
  },

  identify: {
    hint: "Comparaison avec toutes les voix inscrites sur cet appareil.",
    no: "Aucune des voix inscrites ici",
  },

  attacks: {
    heading: "Est-ce une voix en direct ?",
    kinds: { synthetic: "Parole de synthèse", playback: "Enregistrement rejoué" },
    found: { none: "aucun indice", unsure: "impossible à dire avec cet enregistrement", attack: "indices trouvés" },
    where: (start, end) => `le plus net de ${start} à ${end} s`,
    matches: (name: string) => `On dirait ${name}, mais la voix n’est peut-être pas en direct`,
    doNotTrust: "La voix correspond, mais semble synthétique ou rejouée. Ne vous y fiez pas.",
  },

  people: {
    heading: "Voix sur cet appareil",
    none: "Aucune voix n’est encore inscrite.",
    loading: "La liste apparaît quand le modèle vocal est chargé.",
    untrained: "incomplète",
    enrolledOn: (day) => `inscrite le ${day}`,
    speech: (value) => `${value} s de parole`,
    export: "Exporter",
    exportOf: (name) => `Exporter l’empreinte vocale de ${name}`,
    erase: "Effacer",
    eraseOf: (name) => `Effacer l’empreinte vocale de ${name}`,
    sure: (name) => `Effacer tout ce qui est conservé de ${name} ? C’est irréversible.`,
    yes: "Effacer définitivement",
    no: "Garder",
    erased: (name) => `Les données de ${name} sont effacées.`,
    exported: (name) => `L’empreinte vocale de ${name} est dans vos téléchargements.`,
    aboutExport:
      "Un export contient tout ce qui est conservé : des nombres qui décrivent la voix et des mesures des enregistrements. Aucun son n’est conservé.",
  },

  whoSpeaks: "Qui parle ?",
  anything: "Parlez environ trois secondes, de ce que vous voulez.",
  itIs: (name) => `C’est ${name}`,
  nobody: "Il n’y a sur cet appareil aucune voix à comparer. Inscrivez-en une d’abord.",
  uncertain: "Résultat incertain",
  uncertainMore:
    "Le score est trop près du repère pour décider. Parlez un peu plus longtemps, dans un endroit plus calme.",
  failed: "Vérification impossible",
  damaged: "Cette empreinte vocale est endommagée. Effacez-la et enregistrez à nouveau la voix.",
  obsolete:
    "Cette empreinte vocale a été faite avec un autre modèle vocal. Rechargez la page ou inscrivez de nouveau la voix.",
  erasedElsewhere:
    "Cette voix a été effacée dans un autre onglet ou une autre fenêtre. Vérifiez de nouveau avec une voix inscrite.",

  record: {
    start: "Enregistrer",
    stop: "Arrêter",
    asking: "En attente du microphone",
    working: "Analyse de l’enregistrement",
    netSpeech: "Parole détectée",
    ofTarget: (have, want) => `${have} sur ${want} s`,
    drop: "ou déposez des enregistrements ici",
    choose: "Choisir des enregistrements",
  },

  meters: {
    level: "Niveau",
    snr: "Rapport voix/bruit",
    clipping: "Saturation",
    clean: "aucune",
    clipped: "trop fort",
  },

  pictures: { waveform: "Forme d’onde de l’enregistrement", spectrogram: "Spectrogramme mel de l’enregistrement" },

  advice: {
    ready: "Appuyez sur l’anneau et parlez.",
    speak: "Parlez maintenant.",
    keepTalking: "Bien. Continuez à parler.",
    almost: "Presque terminé.",
    closer: "Rapprochez-vous du microphone ou parlez plus fort.",
    away: "Trop fort : éloignez-vous du microphone.",
    quieter: "Trop de bruit : trouvez un endroit plus calme.",
    waiting: "Continuez à parler ; le modèle vocal est encore en cours de chargement.",
    loading: "Attendez que le modèle vocal soit chargé.",
  },

  refusals: {
    TOO_SHORT: "Trop peu de parole. Parlez un peu plus longtemps.",
    TOO_SOFT: "Trop faible. Rapprochez-vous du microphone ou parlez plus fort.",
    TOO_LOUD: "Trop fort, l’enregistrement est saturé. Éloignez-vous du microphone.",
    TOO_NOISY: "Trop de bruit. Trouvez un endroit plus calme.",
    MULTIPLE_SPEAKERS_DETECTED: "Plusieurs personnes ont été entendues. Une seule voix à la fois.",
    INVALID_AUDIO: "Cet enregistrement ne peut pas être lu.",
    ALREADY_ADDED: "Cet enregistrement a déjà été ajouté. Faites-en un nouveau.",
    WRONG_PRINT_TYPE: "Cette empreinte vocale est faite pour un autre type de vérification.",
    FULL: "Cette empreinte vocale est complète : elle ne peut pas utiliser plus d’enregistrements.",
    other: "Une erreur est survenue. Essayez encore une fois.",
  },

  microphone: {
    refused:
      "Le navigateur n’autorise pas le microphone. Autorisez-le pour cette page (l’icône près de l’adresse), puis enregistrez à nouveau. Avec des fichiers, la page fonctionne sans lui.",
    none: "Aucun microphone trouvé. Branchez-en un ou déposez un enregistrement.",
    busy: "Le microphone est utilisé par un autre programme ou ne répond pas. Fermez ce programme, puis enregistrez à nouveau.",
    muted: "Aucun son n’arrive : le microphone est coupé. Activez-le (sur l’appareil, le câble ou dans le système).",
    silent: "Presque aucun son n’arrive. Rapprochez-vous ou choisissez un autre microphone dans le navigateur.",
    unplugged:
      "Le microphone a été débranché, ce qui a mis fin à l’enregistrement. Rebranchez-le avant d’enregistrer à nouveau.",
    insecure:
      "Les navigateurs n’autorisent le microphone que sur les pages chargées en https ou depuis cet ordinateur.",
    other: (detail) =>
      `Le microphone n’a pas pu être ouvert (${detail}). Avec des fichiers, la page fonctionne sans lui.`,
  },

  files: {
    unreadable: (name, why) => `${name} n’a pas pu être lu : ${why}`,
    why: {
      NOT_AUDIO: "ce n’est pas un format audio connu.",
      UNSUPPORTED_ENCODING: "ce format audio n’est pas pris en charge. Convertissez le fichier en WAV.",
      TRUNCATED: "le fichier se termine trop tôt.",
      BAD_HEADER: "son en-tête n’est pas valide.",
      BAD_RATE: "sa fréquence d’échantillonnage doit être de 4 à 192 kHz.",
      BAD_CHANNELS: "il doit avoir de 1 à 64 canaux.",
      CORRUPT_DATA: "le son est endommagé, ou ce navigateur ne peut pas le décoder.",
    },
    tooLong: (name) => `${name} dure plus de dix minutes. Quelques secondes suffisent.`,
    several: "Une vérification n’utilise qu’un fichier. Le premier a été pris.",
    empty: (name) => `${name} ne contient aucun son.`,
    busy: "Attendez la fin de l’enregistrement en cours, puis choisissez de nouveau les fichiers.",
  },

  model: {
    loading: (have, all) => `Chargement du modèle vocal : ${have} sur ${all} Mo`,
    starting: "Démarrage du modèle vocal",
    ready: "Modèle vocal prêt",
    failed: (why) => `Le modèle vocal n’a pas pu être chargé : ${why}`,
    why: {
      noAnswer: "le serveur ne répond pas. Vérifiez le réseau.",
      answered: (status) => `le serveur a répondu avec le statut HTTP ${status}.`,
      incomplete: "le téléchargement est incomplet.",
    },
    insecure:
      "Cette page ne fonctionne qu’en https ou sur l’ordinateur qui la fournit : les navigateurs n’autorisent le chiffrement et le microphone que dans ces cas.",
    notStarted: "La page n’a pas pu démarrer complètement. Rechargez-la ou essayez un autre navigateur.",
    retry: "Réessayer",
  },

  storage: {
    full: "Le stockage du navigateur pour cette page est plein. Effacez une voix ou libérez de la place sur cet appareil, puis réessayez.",
    blocked:
      "Le navigateur ne laisse pas cette page conserver de voix. Autorisez ses données de site (cookies) ou utilisez une fenêtre qui n’est pas privée, puis réessayez.",
    closed: "Les données de cette page ont été effacées, ou une version plus récente est ouverte. Rechargez la page.",
    unreadable:
      "Les voix de cet appareil ne sont plus lisibles, car elles sont endommagées ou leurs clés manquent. Pour recommencer, effacez les données de cette page dans les réglages du navigateur.",
  },

  privacy: {
    short: "Sur cet appareil seulement",
    heading: "Rien ne quitte cet appareil",
    what: "Votre voix est enregistrée, mesurée et comparée dans ce navigateur. Les empreintes vocales sont conservées ici, chiffrées ; le son n’est pas conservé.",
    where:
      "Les voix inscrites sur cette page restent dans ce navigateur, sur cet appareil. Le serveur d’où vient cette page ne peut pas les utiliser, et cette page ne peut pas utiliser les voix inscrites sur le serveur.",
    proof: "Et vous pouvez le vérifier :",
    locked:
      "Depuis que le modèle vocal est chargé, cette page bloque toutes ses propres connexions ; le navigateur y veille.",
    unlocked: "Dès que le modèle vocal sera chargé, la page bloquera toutes ses propres connexions.",
    requests: (count) => (count === 0 ? "Requêtes depuis : aucune." : `Requêtes depuis : ${count}.`),
    online: "Coupez le réseau, rechargez la page et essayez : tout fonctionne encore.",
    offline: "Le réseau est coupé, et tout fonctionne.",
  },
};
