import type { Words } from "./en.js";
import { numbers } from "./numbers.js";

const { decimal } = numbers("pt");

export const pt: Words = {
  tagline: "A sua voz, reconhecida neste dispositivo.",
  description: "Registe e verifique a sua voz no navegador. Nada sai do dispositivo.",
  needsScript: "Esta página calcula tudo no seu dispositivo e precisa de JavaScript para isso.",

  modes: { enroll: "Registar", verify: "Verificar", identify: "Identificar", people: "Vozes" },
  modesLabel: "O que fazer",

  enroll: {
    heading: "Registar uma voz",
    name: "Nome",
    namePlaceholder: "Por exemplo, Ana",
    nameMissing: "Indique primeiro de quem é a voz: escreva um nome.",
    hint: "Três gravações curtas. Leia cada frase em voz alta, como se falasse ao telefone.",
    known: (name) => `${name} já tem uma impressão vocal. O que gravar agora é acrescentado a ela.`,
    unfinished: (name, done) =>
      done === 1
        ? `Há uma gravação de ${name} guardada. Continue.`
        : `Há ${done} gravações de ${name} guardadas. Continue.`,
    steps: (done, of) => `Gravação ${Math.min(done + 1, of)} de ${of}`,
    stepsDone: (of) => `${of} de ${of} gravações`,
    sentences: [
      "“A minha voz é a chave que ninguém consegue copiar do meu bolso.”",
      "“Numa manhã calma, as luzes do porto apagam-se uma após a outra.”",
      "“Sete garrafas verdes estavam no muro até que chegou o vento norte.”",
    ],
    taken: (left) => (left === 1 ? "Bem. Mais uma." : `Bem. Mais ${left}.`),
    trained: (name) => `A impressão vocal de ${name} está pronta`,
    trainedMore: "Passe a “Verificar” e experimente.",
    refused: "Essa gravação não conta",
    inconsistent: "Estas gravações parecem de pessoas diferentes. Grave mais uma.",
  },

  verify: {
    heading: "Verificar uma voz",
    hint: "Diga o que quiser. O valor move-se enquanto fala; a marca é o que é preciso.",
    no: (name) => `Não é ${name}`,
    score: "Valor",
    scoreOf: (score, needed) => `${decimal(score)}, é preciso ${decimal(needed)}`,
  },

  identify: {
    hint: "Comparação com todas as vozes registadas neste dispositivo.",
    no: "Ninguém que esteja registado aqui",
  },

  attacks: {
    heading: "É uma voz viva?",
    kinds: { synthetic: "Fala sintética", playback: "Gravação reproduzida" },
    found: { none: "nenhum sinal", unsure: "não se pode dizer com esta gravação", attack: "há sinais" },
    where: (start: number, end: number) => `mais forte de ${decimal(start)} a ${decimal(end)} s`,
    matches: (name: string) => `Soa como ${name}, mas pode não ser uma voz viva`,
    doNotTrust: "A voz corresponde, mas soa artificial ou reproduzida. Não confie nela.",
  },

  people: {
    heading: "Vozes neste dispositivo",
    none: "Ainda não há nenhuma voz registada.",
    loading: "A lista aparece quando o modelo de voz estiver carregado.",
    untrained: "por terminar",
    enrolledOn: (day) => `registada em ${day}`,
    speech: (value) => `${decimal(value)} s de fala`,
    export: "Exportar",
    exportOf: (name) => `Exportar a impressão vocal de ${name}`,
    erase: "Apagar",
    eraseOf: (name) => `Apagar a impressão vocal de ${name}`,
    sure: (name) => `Apagar tudo o que está guardado de ${name}? Não é possível desfazer.`,
    yes: "Apagar para sempre",
    no: "Manter",
    erased: (name) => `Os dados de ${name} foram apagados.`,
    exported: (name) => `A impressão vocal de ${name} está nas suas transferências.`,
    aboutExport:
      "Uma exportação contém tudo o que está guardado: números que descrevem a voz e medidas das gravações. Não se guarda áudio.",
  },

  whoSpeaks: "Quem fala?",
  anything: "Fale cerca de três segundos, do que quiser.",
  itIs: (name) => `É ${name}`,
  nobody: "Ainda não há nenhuma voz registada neste dispositivo. Registe uma primeiro.",
  uncertain: "Sem certeza",
  uncertainMore: "O valor está demasiado perto da marca. Fale um pouco mais, num lugar mais calmo.",
  failed: "Não foi possível verificar",
  erasedElsewhere: "Essa voz foi apagada noutro separador ou janela. Verifique de novo com uma voz registada.",

  record: {
    start: "Gravar",
    stop: "Parar",
    asking: "À espera do microfone",
    working: "A analisar a gravação",
    netSpeech: "Fala ouvida",
    ofTarget: (have, want) => `${decimal(have)} de ${want} s`,
    drop: "ou largue gravações aqui",
    choose: "Escolher gravações",
  },

  meters: {
    level: "Nível",
    snr: "Voz sobre ruído",
    clipping: "Saturação",
    clean: "nenhuma",
    clipped: "demasiado alto",
  },

  pictures: { waveform: "Forma de onda da gravação", spectrogram: "Espectrograma mel da gravação" },

  advice: {
    ready: "Prima o anel e fale.",
    speak: "Fale agora.",
    keepTalking: "Bem. Continue a falar.",
    almost: "Quase pronto.",
    closer: "Aproxime-se do microfone ou fale mais alto.",
    away: "Demasiado alto: afaste-se do microfone.",
    quieter: "Demasiado ruído: procure um lugar mais calmo.",
    waiting: "Continue a falar; o modelo de voz ainda está a carregar.",
    loading: "Espere até que o modelo de voz esteja carregado.",
  },

  refusals: {
    AUDIO_TOO_SHORT: "Ouviu-se muito pouca fala. Fale um pouco mais.",
    TOO_SHORT: "Ouviu-se muito pouca fala. Fale um pouco mais.",
    AUDIO_TOO_SOFT: "Demasiado baixo. Aproxime-se do microfone ou fale mais alto.",
    AUDIO_TOO_LOUD: "Demasiado alto, a gravação está saturada. Afaste-se do microfone.",
    AUDIO_TOO_NOISY: "Demasiado ruído. Procure um lugar mais calmo.",
    MULTIPLE_SPEAKERS_DETECTED: "Ouviu-se mais de uma pessoa. Uma voz de cada vez.",
    INVALID_AUDIO: "Não é possível ler esta gravação.",
    ALREADY_ADDED: "Esta gravação já foi acrescentada. Grave uma nova.",
    WRONG_PRINT_TYPE: "Esta impressão vocal foi feita para outro tipo de verificação.",
    FULL: "Esta impressão vocal está completa: não pode usar mais gravações.",
    other: "Algo correu mal. Tente outra vez.",
  },

  microphone: {
    refused:
      "O navegador não permite o microfone. Permita-o para esta página (o ícone junto ao endereço) e grave de novo. Com ficheiros funciona sem ele.",
    none: "Não se encontrou nenhum microfone. Ligue um ou largue aqui uma gravação.",
    busy: "O microfone está a ser usado por outro programa ou não responde. Feche esse programa e grave de novo.",
    muted: "Não chega som: o microfone está silenciado. Ligue-o (no aparelho, no cabo ou no sistema).",
    silent: "Quase não chega som. Aproxime-se ou escolha outro microfone no navegador.",
    unplugged: "O microfone foi desligado e a gravação terminou. Ligue-o antes de gravar de novo.",
    insecure: "Um navegador só dá o microfone a páginas carregadas por https ou deste computador.",
    other: (detail) => `Não foi possível abrir o microfone (${detail}). Com ficheiros funciona sem ele.`,
  },

  files: {
    unreadable: (name, why) => `Não foi possível ler ${name}: ${why}`,
    why: {
      NOT_AUDIO: "não é uma gravação de um tipo conhecido.",
      UNSUPPORTED_ENCODING: "gravações deste tipo não são aceites. Converta-a para WAV.",
      TRUNCATED: "o ficheiro acaba cedo demais.",
      BAD_HEADER: "o seu cabeçalho está errado.",
      BAD_RATE: "a sua frequência de amostragem deve ser de 4 a 192 kHz.",
      BAD_CHANNELS: "deve ter de 1 a 64 canais.",
      CORRUPT_DATA: "o seu som está danificado, ou este navegador não consegue descodificá-lo.",
    },
    tooLong: (name) => `${name} tem mais de dez minutos. Bastam alguns segundos.`,
    several: "Uma verificação usa um ficheiro. Foi usado o primeiro.",
    empty: (name) => `${name} não contém som.`,
    busy: "Espere que a gravação atual termine e escolha os ficheiros outra vez.",
  },

  model: {
    loading: (have, all) => `A carregar o modelo de voz: ${decimal(have / 1e6)} de ${decimal(all / 1e6)} MB`,
    starting: "A iniciar o modelo de voz",
    ready: "Modelo de voz pronto",
    failed: (why) => `Não foi possível carregar o modelo de voz: ${why}`,
    why: {
      noAnswer: "o servidor não responde. Verifique a rede.",
      answered: (status) => `o servidor responde com o estado HTTP ${status}.`,
      incomplete: "chegou só uma parte.",
    },
    insecure:
      "Esta página só funciona por https ou no computador que a fornece: só aí os navegadores permitem a cifra e o microfone.",
    retry: "Tentar outra vez",
  },

  storage: {
    full: "O armazenamento do navegador para esta página está cheio. Apague uma voz ou liberte espaço neste dispositivo e tente outra vez.",
    blocked:
      "O navegador não deixa esta página guardar vozes. Permita os dados do site (cookies) ou use uma janela que não seja privada e tente outra vez.",
    closed: "Os dados desta página foram apagados, ou está aberta uma versão mais nova. Recarregue a página.",
    unreadable:
      "As vozes deste dispositivo já não podem ser lidas, porque faltam as suas chaves. Para recomeçar, apague os dados desta página nas definições do navegador.",
  },

  privacy: {
    short: "Só neste dispositivo",
    heading: "Nada sai deste dispositivo",
    what: "A sua voz é gravada, medida e comparada neste navegador. As impressões vocais ficam aqui, cifradas; o áudio não é guardado.",
    where:
      "As vozes registadas nesta página vivem neste navegador, neste dispositivo. Não estão no servidor que fornece a página: as chamadas dele não as conhecem, e esta página não conhece as vozes do servidor.",
    proof: "E pode verificá-lo:",
    locked:
      "Desde que o modelo de voz foi carregado, esta página proíbe a si mesma qualquer ligação; o navegador garante-o.",
    unlocked: "Assim que o modelo de voz for carregado, a página proíbe a si mesma qualquer ligação.",
    requests: (count) => (count === 0 ? "Pedidos desde então: nenhum." : `Pedidos desde então: ${count}.`),
    online: "Desligue a rede, recarregue a página e experimente: tudo continua a funcionar.",
    offline: "A rede está desligada e tudo funciona.",
  },
};
