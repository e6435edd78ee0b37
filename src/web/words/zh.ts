import type { Words } from "./en.js";

export const zh: Words = {
  tagline: "您的声音，在本设备上识别。",

  modes: { enroll: "录入", verify: "验证", identify: "识别", people: "声音" },
  modesLabel: "选择操作",

  enroll: {
    heading: "录入声音",
    name: "姓名",
    namePlaceholder: "例如：安娜",
    nameMissing: "请先输入姓名，说明这是谁的声音。",
    hint: "录三段短音。请像打电话一样大声朗读每个句子。",
    known: (name) => `${name} 已经录入。新的录音会加入现有的声纹。`,
    unfinished: (name, done) => `已保存 ${name} 的 ${done} 段录音，请继续。`,
    steps: (done, of) => `第 ${Math.min(done + 1, of)} 段，共 ${of} 段`,
    stepsDone: (of) => `${of} 段录音已全部完成`,
    sentences: [
      "“我的声音就是钥匙，谁也不能从我的口袋里复制它。”",
      "“在一个安静的早晨，港口的灯光一盏接一盏地熄灭。”",
      "“七个绿色的瓶子立在墙上，直到北风吹来。”",
    ],
    taken: (left) => `很好。还需要 ${left} 段。`,
    trained: (name) => `${name} 的声纹已就绪`,
    trainedMore: "切换到“验证”试一试。",
    refused: "这段录音无效",
    inconsistent: "这些录音听起来像不同的人。请再录一段。",
  },

  verify: {
    heading: "验证声音",
    hint: "说什么都可以。得分会随着您说话而变化；标记处是需要达到的值。",
    no: (name) => `不是 ${name}`,
    score: "得分",
    scoreOf: (score, needed) => `${score}，需要 ${needed}`,
  },

  identify: { hint: "与本设备上录入的所有声音进行比较。", no: "不是这里录入的任何人" },

  attacks: {
    heading: "是真人的声音吗？",
    kinds: { synthetic: "合成语音", playback: "播放的录音" },
    found: { none: "没有迹象", unsure: "从这段录音无法判断", attack: "发现迹象" },
    where: (start, end) => `${start} 至 ${end} 秒最明显`,
    matches: (name: string) => `听起来像${name}，但可能不是真人`,
    doNotTrust: "声音相符，但听起来像是合成或播放的。请不要相信它。",
  },

  people: {
    heading: "本设备上的声音",
    none: "还没有录入任何声音。",
    loading: "声音模型加载完成后显示列表。",
    untrained: "未完成",
    enrolledOn: (day) => `录入于 ${day}`,
    speech: (value) => `${value} 秒语音`,
    export: "导出",
    exportOf: (name) => `导出 ${name} 的声纹`,
    erase: "删除",
    eraseOf: (name) => `删除 ${name} 的声纹`,
    sure: (name) => `要删除 ${name} 的所有数据吗？此操作无法撤销。`,
    yes: "永久删除",
    no: "保留",
    erased: (name) => `${name} 已删除。`,
    exported: (name) => `${name} 的声纹已保存到下载文件夹。`,
    aboutExport: "导出文件包含保存的全部内容：描述声音的数字和录音的测量值。不保存任何音频。",
  },

  whoSpeaks: "谁在说话？",
  anything: "随意说大约三秒钟。",
  itIs: (name) => `是 ${name}`,
  nobody: "本设备上没有可供比对的声音。请先录入。",
  uncertain: "无法确定",
  uncertainMore: "得分离标记太近。请在更安静的地方多说一会儿。",
  failed: "无法完成检查",
  damaged: "此声纹已损坏。请将其删除，然后重新录入该声音。",
  obsolete: "此声纹由另一个声音模型生成。请重新加载页面，或重新录入该声音。",
  erasedElsewhere: "该声音已在另一个标签页或窗口中删除。请用已录入的声音重新检查。",

  record: {
    start: "录音",
    stop: "停止",
    asking: "正在等待麦克风",
    working: "正在分析录音",
    netSpeech: "已听到的语音",
    ofTarget: (have, want) => `${have} / ${want} 秒`,
    drop: "或将录音文件拖到这里",
    choose: "选择录音文件",
  },

  meters: {
    level: "音量",
    snr: "语音与噪声之比",
    clipping: "削波",
    clean: "无",
    clipped: "太响",
  },

  pictures: { waveform: "录音的波形", spectrogram: "录音的梅尔频谱图" },

  advice: {
    ready: "按下圆环，然后说话。",
    speak: "请说话。",
    keepTalking: "很好，请继续说。",
    almost: "快完成了。",
    closer: "请靠近麦克风，或大声一些。",
    away: "太响了：请离麦克风远一些。",
    quieter: "太吵了：请换一个安静的地方。",
    waiting: "请继续说；声音模型仍在加载。",
    loading: "请等待声音模型加载完成。",
  },

  refusals: {
    TOO_SHORT: "听到的语音太少。请多说一会儿。",
    TOO_SOFT: "声音太小。请靠近麦克风，或大声一些。",
    TOO_LOUD: "声音太大，录音失真。请离麦克风远一些。",
    TOO_NOISY: "太吵了。请换一个安静的地方。",
    MULTIPLE_SPEAKERS_DETECTED: "听到了不止一个人。每次只能有一个人说话。",
    INVALID_AUDIO: "无法读取这段录音。",
    ALREADY_ADDED: "这段录音已经添加过。请重新录一段。",
    WRONG_PRINT_TYPE: "这个声纹是为另一种检查制作的。",
    FULL: "这个声纹已满，不能再使用更多录音。",
    other: "出了点问题。请再试一次。",
  },

  microphone: {
    refused: "浏览器不允许使用麦克风。请允许本页面使用（地址旁边的图标），然后重新录音。也可以使用录音文件。",
    none: "没有找到麦克风。请连接麦克风，或拖入录音文件。",
    busy: "麦克风正被其他程序使用，或没有响应。请关闭该程序，然后重新录音。",
    muted: "没有声音：麦克风已静音。请打开它（在麦克风、线控或系统设置中）。",
    silent: "几乎没有声音。请靠近一些，或在浏览器设置中选择其他麦克风。",
    unplugged: "麦克风已断开，录音随之结束。再次录音前请重新连接。",
    insecure: "浏览器只允许通过 https 或从本机加载的页面使用麦克风。",
    other: (detail) => `无法打开麦克风（${detail}）。也可以使用录音文件。`,
  },

  files: {
    unreadable: (name, why) => `无法读取 ${name}：${why}`,
    why: {
      NOT_AUDIO: "这不是已知类型的录音。",
      UNSUPPORTED_ENCODING: "不支持此类录音。请转换为 WAV。",
      TRUNCATED: "文件不完整。",
      BAD_HEADER: "文件头有误。",
      BAD_RATE: "采样率必须为 4 至 192 kHz。",
      BAD_CHANNELS: "必须有 1 至 64 个声道。",
      CORRUPT_DATA: "声音数据已损坏，或此浏览器无法解码。",
    },
    tooLong: (name) => `${name} 超过十分钟。几秒钟就够了。`,
    several: "检查只需一个文件，已使用第一个。",
    empty: (name) => `${name} 中没有声音。`,
    busy: "请等当前录音处理完毕，再重新选择文件。",
  },

  model: {
    loading: (have, all) => `正在加载声音模型：${have} / ${all} MB`,
    starting: "正在启动声音模型",
    ready: "声音模型已就绪",
    failed: (why) => `无法加载声音模型：${why}`,
    why: {
      noAnswer: "服务器没有响应。请检查网络。",
      answered: (status) => `服务器返回 HTTP 状态 ${status}。`,
      incomplete: "只收到一部分。",
    },
    insecure: "本页面只能通过 https 或在提供它的电脑上使用：浏览器只在这种情况下允许加密和麦克风。",
    notStarted: "页面未能完全启动。请重新加载页面，或换用其他浏览器。",
    retry: "重试",
  },

  storage: {
    full: "浏览器为本页面提供的存储空间已满。请删除一个声音或清理设备空间，然后重试。",
    blocked: "浏览器不允许本页面保存声音。请允许本页面的网站数据（Cookie），或使用非隐私窗口，然后重试。",
    closed: "本页面的数据已被清除，或已打开更新的版本。请重新加载页面。",
    unreadable: "本设备上的声音已无法读取，因为数据已损坏或密钥丢失。要重新开始，请在浏览器设置中清除本页面的数据。",
  },

  privacy: {
    short: "仅在本设备上",
    heading: "任何数据都不会离开本设备",
    what: "您的声音在这个浏览器中录制、测量和比较。声纹加密保存在这里；音频完全不保存。",
    where:
      "在此页面录入的声音保存在这台设备的这个浏览器中，不在提供此页面的服务器里：服务器的通话不认识它们，此页面也不认识服务器里的声音。",
    proof: "您可以自己验证：",
    locked: "自声音模型加载后，本页面禁止自己进行任何连接；由浏览器强制执行。",
    unlocked: "声音模型加载后，本页面将禁止自己进行任何连接。",
    requests: (count) => (count === 0 ? "此后的请求：无。" : `此后的请求：${count}。`),
    online: "关闭网络，重新加载页面再试：一切照常工作。",
    offline: "网络已关闭，一切照常工作。",
  },
};
