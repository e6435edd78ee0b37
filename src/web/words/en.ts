/** The page in English: the shape that every other language fills. */

export const en = {
  tagline: "Your voice, recognized on this device.",

  modes: { enroll: "Enroll", verify: "Verify", identify: "Identify", people: "Voices" },
  modesLabel: "What to do",

  enroll: {
    heading: "Enroll a voice",
    name: "Name",
    namePlaceholder: "For example, Anna",
    nameMissing: "First say whose voice it is: enter a name.",
    hint: "Three short recordings. Read each sentence aloud, as you would speak on the phone.",
    known: (name: string) => `${name} is enrolled. New recordings are added to this voiceprint.`,
    unfinished: (name: string, done: number) =>
      done === 1 ? `One recording of ${name} is stored. Go on.` : `${done} recordings of ${name} are stored. Go on.`,
    steps: (done: number, of: number) => `Recording ${Math.min(done + 1, of)} of ${of}`,
    stepsDone: (of: number) => `${of} of ${of} recordings`,
    sentences: [
      "“My voice is the key that nobody can copy from my pocket.”",
      "“On a quiet morning the harbor lights go out one after the other.”",
      "“Seven green bottles stood on the wall until the north wind came.”",
    ],
    taken: (left: number) => (left === 1 ? "Good. One more." : `Good. ${left} more.`),
    trained: (name: string) => `${name}’s voiceprint is ready`,
    trainedMore: "Switch to Verify and try it.",
    refused: "That recording was not used",
    inconsistent: "These recordings sound like different people. Record one more.",
  },

  verify: {
    heading: "Verify a voice",
    hint: "Say anything. The score moves as you speak; it has to reach the mark.",
    no: (name: string) => `It is not ${name}`,
    score: "Score",
    scoreOf: (score: string, needed: string) => `${score}, needed ${needed}`,
  },

  identify: { hint: "Compared with every voice enrolled on this device.", no: "None of the voices enrolled here" },

  attacks: {
    heading: "Is it a live voice?",
    kinds: { synthetic: "Synthetic speech", playback: "Playback of a recording" },
    found: { none: "no sign of it", unsure: "unclear from this recording", attack: "signs of it" },
    where: (start: string, end: string) => `strongest from ${start} to ${end} s`,
    matches: (name: string) => `It sounds like ${name}, but may not be a live voice`,
    doNotTrust: "The voice matches, but sounds synthetic or played back. Do not trust it.",
  },

  people: {
    heading: "Voices on this device",
    none: "No voice is enrolled yet.",
    loading: "The list appears when the voice model is loaded.",
    untrained: "not finished",
    enrolledOn: (day: string) => `enrolled on ${day}`,
    speech: (value: string) => `${value} s of speech`,
    export: "Export",
    exportOf: (name: string) => `Export ${name}’s voiceprint`,
    erase: "Erase",
    eraseOf: (name: string) => `Erase ${name}’s voiceprint`,
    sure: (name: string) => `Erase everything stored about ${name}? This cannot be undone.`,
    yes: "Erase for good",
    no: "Keep",
    erased: (name: string) => `${name} is erased.`,
    exported: (name: string) => `${name}’s voiceprint is in your downloads.`,
    aboutExport:
      "An export contains everything that is stored: numbers that describe the voice, and measures of the recordings. No audio is stored.",
  },

  whoSpeaks: "Who is speaking?",
  anything: "Say anything, for about three seconds.",
  itIs: (name: string) => `It is ${name}`,
  nobody: "There is no voice on this device to compare with. Enroll one first.",
  uncertain: "Not sure",
  uncertainMore: "The score is too close to the mark to decide. Speak a little longer, in a quieter place.",
  failed: "That could not be checked",
  damaged: "This voiceprint is damaged. Erase it, and enroll the voice again.",
  obsolete: "This voiceprint was made with another voice model. Reload the page, or enroll the voice again.",
  erasedElsewhere: "This voice was erased in another tab or window. Check again with a voice that is enrolled.",

  record: {
    start: "Record",
    stop: "Stop",
    asking: "Waiting for the microphone",
    working: "Checking the recording",
    netSpeech: "Speech heard",
    ofTarget: (have: string, want: number) => `${have} of ${want} s`,
    drop: "or drop recordings here",
    choose: "Choose recordings",
  },

  meters: {
    level: "Level",
    snr: "Speech over noise",
    clipping: "Clipping",
    clean: "none",
    clipped: "too loud",
  },

  pictures: { waveform: "Waveform of what is being said", spectrogram: "Mel spectrogram of what is being said" },

  advice: {
    ready: "Press the ring and speak.",
    speak: "Speak now.",
    keepTalking: "Good. Keep talking.",
    almost: "Almost there.",
    closer: "Move closer to the microphone, or speak up.",
    away: "Too loud: move away from the microphone.",
    quieter: "Too noisy: find a quieter place.",
    waiting: "Keep talking; the voice model is still loading.",
    loading: "Wait until the voice model is loaded.",
  },

  refusals: {
    TOO_SHORT: "Too little speech was heard. Speak a little longer.",
    TOO_SOFT: "Too soft. Move closer to the microphone, or speak up.",
    TOO_LOUD: "Too loud, the recording is clipped. Move away from the microphone.",
    TOO_NOISY: "Too noisy. Find a quieter place.",
    MULTIPLE_SPEAKERS_DETECTED: "More than one person was heard. One voice at a time.",
    INVALID_AUDIO: "This recording cannot be read.",
    ALREADY_ADDED: "This recording was already added. Record a new one.",
    WRONG_PRINT_TYPE: "This voiceprint was made for another kind of check.",
    FULL: "This voiceprint is full: it holds as many recordings as it can use.",
    other: "Something went wrong. Try once more.",
  } as Readonly<Record<string, string>> & { readonly other: string },

  microphone: {
    refused:
      "The browser does not allow the microphone. Allow it for this page (the icon next to the address), then record again. Recordings from files work without it.",
    none: "No microphone was found. Plug one in, or drop a recording instead.",
    busy: "The microphone is in use by another program, or does not answer. Close that program, then record again.",
    muted:
      "No sound is coming in: the microphone is muted. Switch it on (on the microphone, its cable, or in the system’s settings).",
    silent: "Hardly any sound is coming in. Move closer, or choose another microphone in the browser’s settings.",
    unplugged: "The microphone was disconnected, which ended the recording. Plug it in before you record again.",
    insecure: "Browsers allow the microphone only on pages loaded over https or from this machine.",
    other: (detail: string) => `The microphone could not be opened (${detail}). Recordings from files work without it.`,
  },

  files: {
    unreadable: (name: string, why: string) => `${name} could not be read: ${why}`,
    why: {
      NOT_AUDIO: "it is not in a known audio format.",
      UNSUPPORTED_ENCODING: "this audio format is not supported. Convert it to WAV.",
      TRUNCATED: "the file ends too early.",
      BAD_HEADER: "its header is invalid.",
      BAD_RATE: "its sampling rate must be 4 to 192 kHz.",
      BAD_CHANNELS: "it must have 1 to 64 channels.",
      CORRUPT_DATA: "its sound is damaged, or this browser cannot decode it.",
    },
    tooLong: (name: string) => `${name} is longer than ten minutes. A few seconds are enough.`,
    several: "A check takes one file. The first one was used.",
    empty: (name: string) => `${name} contains no sound.`,
    busy: "Wait until the current recording is done, then choose the files again.",
  },

  model: {
    loading: (have: string, all: string) => `Loading the voice model: ${have} of ${all} MB`,
    starting: "Starting the voice model",
    ready: "Voice model ready",
    failed: (why: string) => `The voice model could not be loaded: ${why}`,
    why: {
      noAnswer: "the server does not answer. Check the network.",
      answered: (status: number) => `the server answered with HTTP status ${status}.`,
      incomplete: "the download is incomplete.",
    },
    insecure:
      "This page works only over https, or on the machine that serves it: browsers allow encryption and the microphone only there.",
    notStarted: "The page could not be started completely. Reload it, or try another browser.",
    retry: "Try again",
  },

  storage: {
    full: "The browser’s storage for this page is full. Erase a voice or free some space on this device, then try again.",
    blocked:
      "The browser does not let this page store voices. Allow site data (cookies) for it, or use a window that is not private, then try again.",
    closed: "The data of this page was cleared, or a newer version of it is open. Reload the page.",
    unreadable:
      "The voices on this device can no longer be read, because they are damaged or their keys are missing. To start again, clear the data of this page in the browser’s settings.",
  },

  privacy: {
    short: "On this device only",
    heading: "Nothing leaves this device",
    what: "Your voice is recorded, measured and compared in this browser. Voiceprints are kept here, encrypted; audio is not kept at all.",
    where:
      "Voices enrolled on this page stay in this browser, on this device. The server that this page comes from cannot use them, and this page cannot use voices that are enrolled on the server.",
    proof: "And you can check it:",
    locked: "Since the voice model was loaded, this page has blocked all its own connections; the browser enforces it.",
    unlocked: "As soon as the voice model is loaded, the page blocks all its own connections.",
    requests: (count: number) => (count === 0 ? "Requests since then: none." : `Requests since then: ${count}.`),
    online: "Switch off your network, reload, and try: everything still works.",
    offline: "Your network is off, and everything works.",
  },
};

export type Words = typeof en;
