/** The microphone at its own sampling rate, without echo cancellation and other processing meant for telephony. */
import { levelOf, type SoundState, SoundWatch } from "./sound-state.js";

/** `refused` by the person or the browser, `none` found, `busy`: used by another program, `insecure` page (no https). */
export type MicrophoneProblem = "refused" | "none" | "busy" | "insecure" | "other";

/** In plain words, because pages show messages of errors to people. The browser's own words are the message of `other`, and the cause. */
const messages: Readonly<Record<Exclude<MicrophoneProblem, "other">, string>> = {
  refused: "The browser does not allow the microphone. Allow it for this page, then try again.",
  none: "No microphone was found. Plug one in, then try again.",
  busy: "The microphone is in use by another program, or does not answer. Close that program, then try again.",
  insecure: "Browsers allow the microphone only on pages loaded over https or from this machine.",
};

/** The microphone cannot be used; `problem` says why. */
export class MicrophoneError extends Error {
  override readonly name = "MicrophoneError";
  constructor(
    readonly problem: MicrophoneProblem,
    detail: string,
    options?: ErrorOptions,
  ) {
    super(problem === "other" ? detail : messages[problem], options);
  }
}

/** An open microphone. */
export interface Microphone {
  readonly rateHz: number;
  close(): Promise<void>;
}

/** Events while it is open. */
export interface MicrophoneEvents {
  /** Mono samples in -1..1, about 40 ms each, and their level in dB relative to full scale. */
  readonly heard: (samples: Float32Array, levelDb: number, rateHz: number) => void;
  /** Called at each change; the state starts as `sound`. A muted microphone is detected within a second, a silent one within two. */
  readonly state?: (state: SoundState) => void;
  /** The microphone was unplugged or taken away; it is closed. */
  readonly lost?: () => void;
}

/** Options of `openMicrophone`. */
export interface MicrophoneOptions {
  /** The `MediaDeviceInfo.deviceId` of the microphone; by default the browser chooses. */
  readonly deviceId?: string;
}

const asItIs = { echoCancellation: false, autoGainControl: false, noiseSuppression: false };

/** Asks for permission if it was not given yet. Throws `MicrophoneError` on every failure. */
export async function openMicrophone(
  { heard, state, lost }: MicrophoneEvents,
  options: MicrophoneOptions = {},
): Promise<Microphone> {
  const stream = await askForStream(options);
  const [track] = stream.getAudioTracks();
  if (!track) throw new MicrophoneError("none", "the stream has no audio");
  const context = contextOf(track);
  let open = true;
  const close = async () => {
    if (!open) return;
    open = false;
    track.stop();
    await context.close();
  };
  track.addEventListener("ended", () => {
    if (!open) return;
    lost?.();
    void close();
  });
  try {
    await context.audioWorklet.addModule(new URL("./capture-worklet.js", import.meta.url));
    const watch = new SoundWatch(context.sampleRate);
    let reported: SoundState = "sound";
    const report = (now: SoundState) => {
      if (!open || now === reported) return;
      reported = now;
      state?.(now);
    };
    // A microphone muted by the operating system sends no samples; other kinds of muting show in the samples.
    track.addEventListener("mute", () => report("muted"));
    if (track.muted) report("muted");
    const capture = new AudioWorkletNode(context, "capture", { numberOfOutputs: 0 });
    capture.port.addEventListener("message", ({ data }) => {
      if (!open) return;
      const samples = data as Float32Array;
      const levelDb = levelOf(samples);
      report(track.muted ? "muted" : watch.push(samples, levelDb));
      heard(samples, levelDb, context.sampleRate);
    });
    capture.port.start();
    context.createMediaStreamSource(stream).connect(capture);
    await started(context);
  } catch (error) {
    const wasLost = !open;
    await close();
    if (error instanceof MicrophoneError) throw error;
    throw new MicrophoneError(wasLost ? "none" : "other", (error as Error).message, { cause: error });
  }
  return { rateHz: context.sampleRate, close };
}

const longestStartMs = 5000;

/** Without an audio output on the machine, Firefox would wait forever. */
async function started(context: AudioContext): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const refuse = () => reject(new MicrophoneError("busy", "the audio device does not start"));
    timer = setTimeout(refuse, longestStartMs);
  });
  await Promise.race([context.resume(), late]).finally(() => clearTimeout(timer));
}

/** Uses the rate of the device, so that only the kernels resample. */
function contextOf(track: MediaStreamTrack): AudioContext {
  try {
    const { sampleRate } = track.getSettings();
    return new AudioContext(sampleRate ? { sampleRate } : {});
  } catch (error) {
    track.stop();
    throw new MicrophoneError("other", (error as Error).message);
  }
}

async function askForStream({ deviceId }: MicrophoneOptions): Promise<MediaStream> {
  const devices = globalThis.navigator?.mediaDevices as MediaDevices | undefined;
  // Absent on pages that are not a secure context, and in programs that are not browsers or give pages no microphone.
  if (!devices?.getUserMedia)
    throw globalThis.isSecureContext === false
      ? new MicrophoneError("insecure", "no secure context")
      : new MicrophoneError("other", "This browser or program does not support microphones.");
  try {
    return await devices.getUserMedia({
      audio: { ...asItIs, ...(deviceId === undefined ? {} : { deviceId: { exact: deviceId } }) },
    });
  } catch (error) {
    const { name, message } = error as DOMException;
    throw new MicrophoneError(problemOf(name), message || name, { cause: error });
  }
}

function problemOf(name: string): MicrophoneProblem {
  if (name === "NotAllowedError" || name === "SecurityError") return "refused";
  if (name === "NotFoundError" || name === "OverconstrainedError") return "none";
  return name === "NotReadableError" || name === "AbortError" ? "busy" : "other";
}
