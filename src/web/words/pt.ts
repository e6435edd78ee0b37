import type { Words } from "./en.js";

/** Brazilian Portuguese. */
export const pt: Words = {
  tagline: "Sua voz, reconhecida neste dispositivo.",

  modes: { enroll: "Cadastrar", verify: "Verificar", identify: "Identificar", people: "Vozes" },
  modesLabel: "O que você quer fazer?",

  enroll: {
    heading: "Cadastrar uma voz",
    name: "Nome",
    namePlaceholder: "Por exemplo, Ana",
    nameMissing: "Primeiro diga de quem é a voz: digite um nome.",
    hint: "Três gravações curtas. Leia cada frase em voz alta, como se falasse ao telefone.",
    known: (name) => `${name} já tem uma impressão vocal. As novas gravações são adicionadas a ela.`,
    unfinished: (name, done) =>
      done === 1
        ? `Há uma gravação de ${name} guardada. Continue.`
        : `Há ${done} gravações de ${name} guardadas. Continue.`,
    steps: (done, of) => `Gravação ${Math.min(done + 1, of)} de ${of}`,
    stepsDone: (of) => `${of} de ${of} gravações`,
    sentences: [
      "“Minha voz é a chave que ninguém consegue copiar do meu bolso.”",
      "“Numa manhã tranquila, as luzes do porto se apagam uma após a outra.”",
      "“Sete garrafas verdes estavam em cima do muro até que chegou o vento norte.”",
    ],
    taken: (left) => (left === 1 ? "Muito bem. Só mais uma." : `Muito bem. Faltam ${left}.`),
    trained: (name) => `A impressão vocal de ${name} está pronta`,
    trainedMore: "Passe para “Verificar” e experimente.",
    refused: "Essa gravação não foi usada",
    inconsistent: "Estas gravações parecem ser de pessoas diferentes. Grave mais uma.",
  },

  verify: {
    heading: "Verificar uma voz",
    hint: "Diga o que quiser. A pontuação muda enquanto você fala; ela precisa chegar à marca.",
    no: (name) => `Não é ${name}`,
    score: "Pontuação",
    scoreOf: (score, needed) => `${score}, necessário ${needed}`,
  },

  identify: {
    hint: "Comparação com todas as vozes cadastradas neste dispositivo.",
    no: "Ninguém que esteja cadastrado aqui",
  },

  attacks: {
    heading: "É uma voz ao vivo?",
    kinds: { synthetic: "Fala sintética", playback: "Gravação reproduzida" },
    found: { none: "nenhum sinal", unsure: "não dá para saber com esta gravação", attack: "há sinais" },
    where: (start, end) => `mais forte de ${start} a ${end} s`,
    matches: (name: string) => `Parece ${name}, mas pode não ser uma voz ao vivo`,
    doNotTrust: "A voz corresponde, mas parece artificial ou reproduzida. Não confie nela.",
  },

  people: {
    heading: "Vozes neste dispositivo",
    none: "Ainda não há nenhuma voz cadastrada.",
    loading: "A lista aparece quando o modelo de voz estiver carregado.",
    untrained: "incompleta",
    enrolledOn: (day) => `cadastrada em ${day}`,
    speech: (value) => `${value} s de fala`,
    export: "Exportar",
    exportOf: (name) => `Exportar a impressão vocal de ${name}`,
    erase: "Apagar",
    eraseOf: (name) => `Apagar a impressão vocal de ${name}`,
    sure: (name) => `Apagar tudo o que está guardado de ${name}? Não é possível desfazer.`,
    yes: "Apagar para sempre",
    no: "Manter",
    erased: (name) => `Os dados de ${name} foram apagados.`,
    exported: (name) => `A impressão vocal de ${name} está nos seus downloads.`,
    aboutExport:
      "Uma exportação contém tudo o que está guardado: números que descrevem a voz e medidas das gravações. Nenhum áudio é guardado.",
  },

  whoSpeaks: "Quem está falando?",
  anything: "Fale por uns três segundos, sobre o que quiser.",
  itIs: (name) => `É ${name}`,
  nobody: "Neste dispositivo não há nenhuma voz para comparar. Cadastre uma primeiro.",
  uncertain: "Sem certeza",
  uncertainMore:
    "A pontuação está perto demais da marca para decidir. Fale um pouco mais, em um lugar mais silencioso.",
  failed: "Não foi possível verificar",
  damaged: "Esta impressão vocal está danificada. Apague-a e cadastre a voz de novo.",
  obsolete: "Esta impressão vocal foi feita com outro modelo de voz. Recarregue a página ou cadastre a voz de novo.",
  erasedElsewhere: "Essa voz foi apagada em outra aba ou janela. Verifique de novo com uma voz cadastrada.",

  record: {
    start: "Gravar",
    stop: "Parar",
    asking: "Aguardando o microfone",
    working: "Analisando a gravação",
    netSpeech: "Fala detectada",
    ofTarget: (have, want) => `${have} de ${want} s`,
    drop: "ou solte gravações aqui",
    choose: "Escolher gravações",
  },

  meters: {
    level: "Nível",
    snr: "Relação voz/ruído",
    clipping: "Saturação",
    clean: "nenhuma",
    clipped: "alto demais",
  },

  pictures: { waveform: "Forma de onda da gravação", spectrogram: "Espectrograma mel da gravação" },

  advice: {
    ready: "Pressione o anel e fale.",
    speak: "Fale agora.",
    keepTalking: "Muito bem. Continue falando.",
    almost: "Quase pronto.",
    closer: "Chegue mais perto do microfone ou fale mais alto.",
    away: "Alto demais: afaste-se do microfone.",
    quieter: "Ruído demais: procure um lugar mais silencioso.",
    waiting: "Continue falando; o modelo de voz ainda está carregando.",
    loading: "Espere até que o modelo de voz esteja carregado.",
  },

  refusals: {
    TOO_SHORT: "Houve muito pouca fala. Fale um pouco mais.",
    TOO_SOFT: "Baixo demais. Chegue mais perto do microfone ou fale mais alto.",
    TOO_LOUD: "Alto demais, a gravação está saturada. Afaste-se do microfone.",
    TOO_NOISY: "Ruído demais. Procure um lugar mais silencioso.",
    MULTIPLE_SPEAKERS_DETECTED: "Mais de uma pessoa foi ouvida. Uma voz de cada vez.",
    INVALID_AUDIO: "Não é possível ler esta gravação.",
    ALREADY_ADDED: "Esta gravação já foi adicionada. Grave uma nova.",
    WRONG_PRINT_TYPE: "Esta impressão vocal foi feita para outro tipo de verificação.",
    FULL: "Esta impressão vocal está completa: não pode usar mais gravações.",
    other: "Algo deu errado. Tente outra vez.",
  },

  microphone: {
    refused:
      "O navegador não permite o microfone. Permita-o para esta página (o ícone ao lado do endereço) e grave de novo. Com arquivos funciona sem ele.",
    none: "Nenhum microfone foi encontrado. Conecte um ou solte aqui uma gravação.",
    busy: "O microfone está sendo usado por outro programa ou não responde. Feche esse programa e grave de novo.",
    muted: "Não chega som: o microfone está no mudo. Ligue-o (no aparelho, no cabo ou no sistema).",
    silent: "Quase não chega som. Chegue mais perto ou escolha outro microfone no navegador.",
    unplugged: "O microfone foi desconectado, e a gravação terminou. Conecte-o antes de gravar de novo.",
    insecure: "Os navegadores só permitem o microfone em páginas carregadas por https ou deste computador.",
    other: (detail) => `Não foi possível abrir o microfone (${detail}). Com arquivos funciona sem ele.`,
  },

  files: {
    unreadable: (name, why) => `Não foi possível ler ${name}: ${why}`,
    why: {
      NOT_AUDIO: "não está em um formato de áudio conhecido.",
      UNSUPPORTED_ENCODING: "este formato de áudio não é aceito. Converta o arquivo para WAV.",
      TRUNCATED: "o arquivo termina cedo demais.",
      BAD_HEADER: "o cabeçalho é inválido.",
      BAD_RATE: "a taxa de amostragem deve ser de 4 a 192 kHz.",
      BAD_CHANNELS: "deve ter de 1 a 64 canais.",
      CORRUPT_DATA: "o som está danificado, ou este navegador não consegue decodificá-lo.",
    },
    tooLong: (name) => `${name} tem mais de dez minutos. Bastam alguns segundos.`,
    several: "Uma verificação usa um só arquivo. O primeiro foi usado.",
    empty: (name) => `${name} não contém som.`,
    busy: "Espere a gravação atual terminar e escolha os arquivos outra vez.",
  },

  model: {
    loading: (have, all) => `Carregando o modelo de voz: ${have} de ${all} MB`,
    starting: "Iniciando o modelo de voz",
    ready: "Modelo de voz pronto",
    failed: (why) => `Não foi possível carregar o modelo de voz: ${why}`,
    why: {
      noAnswer: "o servidor não responde. Verifique a rede.",
      answered: (status) => `o servidor respondeu com o status HTTP ${status}.`,
      incomplete: "o download está incompleto.",
    },
    insecure:
      "Esta página só funciona por https ou no computador que a fornece: só nesses casos os navegadores permitem a criptografia e o microfone.",
    notStarted: "Não foi possível iniciar a página por completo. Recarregue-a ou tente outro navegador.",
    retry: "Tentar outra vez",
  },

  storage: {
    full: "O armazenamento do navegador para esta página está cheio. Apague uma voz ou libere espaço neste dispositivo e tente outra vez.",
    blocked:
      "O navegador não deixa esta página guardar vozes. Permita os dados do site (cookies) ou use uma janela que não seja anônima e tente outra vez.",
    closed: "Os dados desta página foram apagados, ou uma versão mais nova está aberta. Recarregue a página.",
    unreadable:
      "As vozes deste dispositivo não podem mais ser lidas, porque estão danificadas ou faltam as chaves delas. Para recomeçar, apague os dados desta página nas configurações do navegador.",
  },

  privacy: {
    short: "Só neste dispositivo",
    heading: "Nada sai deste dispositivo",
    what: "Sua voz é gravada, medida e comparada neste navegador. As impressões vocais ficam aqui, criptografadas; o áudio não é guardado.",
    where:
      "As vozes cadastradas nesta página ficam neste navegador, neste dispositivo. O servidor de onde vem esta página não pode usá-las, e esta página não pode usar as vozes cadastradas no servidor.",
    proof: "E você pode conferir:",
    locked:
      "Desde que o modelo de voz foi carregado, esta página bloqueia todas as próprias conexões; o navegador garante isso.",
    unlocked: "Assim que o modelo de voz for carregado, a página bloqueia todas as próprias conexões.",
    requests: (count) => (count === 0 ? "Requisições desde então: nenhuma." : `Requisições desde então: ${count}.`),
    online: "Desligue a rede, recarregue a página e experimente: tudo continua funcionando.",
    offline: "A rede está desligada, e tudo funciona.",
  },
};
