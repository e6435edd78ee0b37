import type { Words } from "./en.js";

export const de: Words = {
  tagline: "Ihre Stimme, auf diesem Gerät erkannt.",

  modes: { enroll: "Anlernen", verify: "Prüfen", identify: "Erkennen", people: "Stimmen" },
  modesLabel: "Was möchten Sie tun?",

  enroll: {
    heading: "Eine Stimme anlernen",
    name: "Name",
    namePlaceholder: "Zum Beispiel Anna",
    nameMissing: "Wessen Stimme ist es? Geben Sie zuerst einen Namen ein.",
    hint: "Drei kurze Aufnahmen. Lesen Sie jeden Satz laut vor, so wie Sie am Telefon sprechen.",
    known: (name) => `${name} ist schon angelernt. Neue Aufnahmen werden diesem Stimmabdruck hinzugefügt.`,
    unfinished: (name, done) =>
      done === 1
        ? `Eine Aufnahme von ${name} ist gespeichert. Machen Sie weiter.`
        : `${done} Aufnahmen von ${name} sind gespeichert. Machen Sie weiter.`,
    steps: (done, of) => `Aufnahme ${Math.min(done + 1, of)} von ${of}`,
    stepsDone: (of) => `${of} von ${of} Aufnahmen`,
    sentences: [
      "„Meine Stimme ist der Schlüssel, den mir niemand aus der Tasche nehmen kann.“",
      "„An einem stillen Morgen gehen die Lichter im Hafen eines nach dem anderen aus.“",
      "„Sieben grüne Flaschen standen auf der Mauer, bis der Nordwind kam.“",
    ],
    taken: (left) => (left === 1 ? "Gut. Noch eine." : `Gut. Noch ${left}.`),
    trained: (name) => `Der Stimmabdruck von ${name} ist fertig`,
    trainedMore: "Wechseln Sie zu „Prüfen“ und probieren Sie ihn aus.",
    refused: "Diese Aufnahme zählt nicht",
    inconsistent: "Diese Aufnahmen klingen nach verschiedenen Personen. Nehmen Sie noch eine auf.",
  },

  verify: {
    heading: "Eine Stimme prüfen",
    hint: "Sagen Sie, was Sie möchten. Der Wert bewegt sich beim Sprechen; er muss den Strich erreichen.",
    no: (name) => `Das ist nicht ${name}`,
    score: "Wert",
    scoreOf: (score, needed) => `${score}, nötig ${needed}`,
  },

  identify: {
    hint: "Verglichen mit allen Stimmen, die auf diesem Gerät angelernt sind.",
    no: "Niemand, der hier angelernt ist",
  },

  attacks: {
    heading: "Wird hier live gesprochen?",
    kinds: { synthetic: "Künstliche Sprache", playback: "Abgespielte Aufnahme" },
    found: { none: "kein Anzeichen", unsure: "an dieser Aufnahme nicht zu erkennen", attack: "Anzeichen gefunden" },
    where: (start, end) => `am stärksten von ${start} bis ${end} s`,
    matches: (name: string) => `Klingt wie ${name}, ist aber vielleicht nicht live gesprochen`,
    doNotTrust: "Die Stimme passt, klingt aber künstlich oder abgespielt. Vertrauen Sie ihr nicht.",
  },

  people: {
    heading: "Stimmen auf diesem Gerät",
    none: "Noch ist keine Stimme angelernt.",
    loading: "Die Liste erscheint, sobald das Stimmmodell geladen ist.",
    untrained: "nicht fertig",
    enrolledOn: (day) => `angelernt am ${day}`,
    speech: (value) => `${value} s Sprache`,
    export: "Exportieren",
    exportOf: (name) => `Stimmabdruck von ${name} exportieren`,
    erase: "Löschen",
    eraseOf: (name) => `Stimmabdruck von ${name} löschen`,
    sure: (name) => `Alles löschen, was von ${name} gespeichert ist? Das lässt sich nicht rückgängig machen.`,
    yes: "Endgültig löschen",
    no: "Behalten",
    erased: (name) => `Die Daten von ${name} sind gelöscht.`,
    exported: (name) => `Der Stimmabdruck von ${name} liegt bei Ihren Downloads.`,
    aboutExport:
      "Ein Export enthält alles, was gespeichert ist: Zahlen, die die Stimme beschreiben, und Messwerte der Aufnahmen. Ton wird nicht gespeichert.",
  },

  whoSpeaks: "Wer spricht?",
  anything: "Sprechen Sie etwa drei Sekunden lang, was Sie möchten.",
  itIs: (name) => `Das ist ${name}`,
  nobody: "Auf diesem Gerät gibt es keine Stimme zum Vergleichen. Lernen Sie zuerst eine an.",
  uncertain: "Nicht sicher",
  uncertainMore: "Der Wert liegt zu nah am Strich. Sprechen Sie etwas länger, an einem ruhigeren Ort.",
  failed: "Das konnte nicht geprüft werden",
  damaged: "Dieser Stimmabdruck ist beschädigt. Löschen Sie ihn und lernen Sie die Stimme neu an.",
  obsolete:
    "Dieser Stimmabdruck wurde mit einem anderen Stimmmodell erstellt. Laden Sie die Seite neu, oder lernen Sie die Stimme noch einmal an.",
  erasedElsewhere:
    "Diese Stimme wurde in einem anderen Tab oder Fenster gelöscht. Prüfen Sie noch einmal mit einer Stimme, die angelernt ist.",

  record: {
    start: "Aufnehmen",
    stop: "Stopp",
    asking: "Warten auf das Mikrofon",
    working: "Aufnahme wird ausgewertet",
    netSpeech: "Gehörte Sprache",
    ofTarget: (have, want) => `${have} von ${want} s`,
    drop: "oder Aufnahmen hierher ziehen",
    choose: "Aufnahmen auswählen",
  },

  meters: {
    level: "Pegel",
    snr: "Rauschabstand",
    clipping: "Übersteuerung",
    clean: "keine",
    clipped: "zu laut",
  },

  pictures: { waveform: "Wellenform der Aufnahme", spectrogram: "Mel-Spektrogramm der Aufnahme" },

  advice: {
    ready: "Drücken Sie den Ring und sprechen Sie.",
    speak: "Sprechen Sie jetzt.",
    keepTalking: "Gut. Sprechen Sie weiter.",
    almost: "Fast geschafft.",
    closer: "Gehen Sie näher ans Mikrofon oder sprechen Sie lauter.",
    away: "Zu laut: Gehen Sie weiter weg vom Mikrofon.",
    quieter: "Zu viel Lärm: Suchen Sie einen ruhigeren Ort.",
    waiting: "Sprechen Sie weiter; das Stimmmodell wird noch geladen.",
    loading: "Warten Sie, bis das Stimmmodell geladen ist.",
  },

  refusals: {
    TOO_SHORT: "Es war zu wenig Sprache zu hören. Sprechen Sie etwas länger.",
    TOO_SOFT: "Zu leise. Gehen Sie näher ans Mikrofon oder sprechen Sie lauter.",
    TOO_LOUD: "Zu laut, die Aufnahme ist übersteuert. Gehen Sie weiter weg vom Mikrofon.",
    TOO_NOISY: "Zu viel Lärm. Suchen Sie einen ruhigeren Ort.",
    MULTIPLE_SPEAKERS_DETECTED: "Es war mehr als eine Person zu hören. Bitte nur eine Stimme.",
    INVALID_AUDIO: "Diese Aufnahme kann nicht gelesen werden.",
    ALREADY_ADDED: "Diese Aufnahme wurde schon hinzugefügt. Nehmen Sie eine neue auf.",
    WRONG_PRINT_TYPE: "Dieser Stimmabdruck ist für eine andere Art von Prüfung.",
    FULL: "Dieser Stimmabdruck ist voll: Mehr Aufnahmen kann er nicht nutzen.",
    other: "Etwas ist schiefgegangen. Versuchen Sie es noch einmal.",
  },

  microphone: {
    refused:
      "Der Browser gibt das Mikrofon nicht frei. Erlauben Sie es für diese Seite (Symbol neben der Adresse) und nehmen Sie noch einmal auf. Mit Dateien geht es auch ohne.",
    none: "Kein Mikrofon gefunden. Schließen Sie eines an oder ziehen Sie eine Aufnahme hierher.",
    busy: "Das Mikrofon wird von einem anderen Programm benutzt oder antwortet nicht. Schließen Sie das Programm und nehmen Sie noch einmal auf.",
    muted:
      "Es kommt kein Ton an: Das Mikrofon ist stummgeschaltet. Schalten Sie es ein (am Gerät, am Kabel oder in den Systemeinstellungen).",
    silent: "Es kommt kaum Ton an. Gehen Sie näher heran oder wählen Sie im Browser ein anderes Mikrofon.",
    unplugged:
      "Das Mikrofon wurde getrennt, damit endete die Aufnahme. Schließen Sie es an, bevor Sie wieder aufnehmen.",
    insecure: "Browser geben das Mikrofon nur Seiten frei, die über https oder von diesem Rechner geladen wurden.",
    other: (detail) => `Das Mikrofon konnte nicht geöffnet werden (${detail}). Mit Dateien geht es auch ohne.`,
  },

  files: {
    unreadable: (name, why) => `${name} konnte nicht gelesen werden: ${why}`,
    why: {
      NOT_AUDIO: "Das Audioformat ist nicht bekannt.",
      UNSUPPORTED_ENCODING: "Dieses Audioformat wird nicht unterstützt. Wandeln Sie die Datei in WAV um.",
      TRUNCATED: "Die Datei endet zu früh.",
      BAD_HEADER: "Der Dateikopf ist ungültig.",
      BAD_RATE: "Die Abtastrate muss 4 bis 192 kHz betragen.",
      BAD_CHANNELS: "Die Datei muss 1 bis 64 Kanäle haben.",
      CORRUPT_DATA: "Der Ton ist beschädigt, oder dieser Browser kann ihn nicht decodieren.",
    },
    tooLong: (name) => `${name} ist länger als zehn Minuten. Ein paar Sekunden genügen.`,
    several: "Zum Prüfen genügt eine Datei. Die erste wurde genommen.",
    empty: (name) => `${name} enthält keinen Ton.`,
    busy: "Warten Sie, bis die laufende Aufnahme fertig ist, und wählen Sie die Dateien dann noch einmal.",
  },

  model: {
    loading: (have, all) => `Stimmmodell wird geladen: ${have} von ${all} MB`,
    starting: "Stimmmodell wird gestartet",
    ready: "Stimmmodell bereit",
    failed: (why) => `Das Stimmmodell konnte nicht geladen werden: ${why}`,
    why: {
      noAnswer: "Der Server antwortet nicht. Prüfen Sie die Netzwerkverbindung.",
      answered: (status) => `Der Server antwortet mit HTTP-Status ${status}.`,
      incomplete: "Der Download ist unvollständig.",
    },
    insecure:
      "Diese Seite funktioniert nur über https oder auf dem Rechner, der sie ausliefert: Nur dort erlauben Browser Verschlüsselung und Mikrofon.",
    notStarted:
      "Die Seite konnte nicht vollständig gestartet werden. Laden Sie sie neu, oder versuchen Sie es mit einem anderen Browser.",
    retry: "Noch einmal versuchen",
  },

  storage: {
    full: "Der Speicher des Browsers für diese Seite ist voll. Löschen Sie eine Stimme oder schaffen Sie Platz auf diesem Gerät und versuchen Sie es noch einmal.",
    blocked:
      "Der Browser lässt diese Seite keine Stimmen speichern. Erlauben Sie ihr Websitedaten (Cookies) oder nehmen Sie ein Fenster, das nicht privat ist, und versuchen Sie es noch einmal.",
    closed:
      "Die Daten dieser Seite wurden gelöscht, oder eine neuere Version von ihr ist geöffnet. Laden Sie die Seite neu.",
    unreadable:
      "Die Stimmen auf diesem Gerät sind nicht mehr lesbar, weil sie beschädigt sind oder ihre Schlüssel fehlen. Um neu zu beginnen, löschen Sie die Daten dieser Seite in den Einstellungen des Browsers.",
  },

  privacy: {
    short: "Nur auf diesem Gerät",
    heading: "Nichts verlässt dieses Gerät",
    what: "Ihre Stimme wird in diesem Browser aufgenommen, gemessen und verglichen. Stimmabdrücke werden hier verschlüsselt gespeichert; Ton wird gar nicht gespeichert.",
    where:
      "Stimmen, die auf dieser Seite angelernt werden, bleiben in diesem Browser, auf diesem Gerät. Der Server, von dem die Seite kommt, kann sie nicht nutzen, und diese Seite kann die Stimmen des Servers nicht nutzen.",
    proof: "Und Sie können es prüfen:",
    locked:
      "Seit das Stimmmodell geladen ist, blockiert diese Seite alle eigenen Verbindungen; der Browser setzt das durch.",
    unlocked: "Sobald das Stimmmodell geladen ist, blockiert die Seite alle eigenen Verbindungen.",
    requests: (count) => (count === 0 ? "Anfragen seitdem: keine." : `Anfragen seitdem: ${count}.`),
    online:
      "Trennen Sie die Netzwerkverbindung, laden Sie die Seite neu und probieren Sie es aus: Alles funktioniert weiter.",
    offline: "Die Netzwerkverbindung ist getrennt, und alles funktioniert.",
  },
};
