/** The microphone, at its own rate and as it is: what a telephone would do to the sound is left out. */
import { levelOf, type SoundState, SoundWatch } from "./sound-state.js";

/** `refused` by the person or the browser, `none` there, `busy` with another program, `insecure` page (no https). */
export type MicrophoneProblem = "refused" | "none" | "busy" | "insecure" | "other";

/** The microphone cannot be used; `problem` says why. */
export class MicrophoneError extends Error {
  override readonly name = "MicrophoneError";
  constructor(
    readonly problem: MicrophoneProblem,
    detail: string,
  ) {
    super(detail);
  }
}

/** A microphone that is open. */
export interface Microphone {
  readonly rateHz: number;
  close(): Promise<void>;
}

/** What happens while it is open. */
export interface MicrophoneEvents {
  /** Mono, -1..1, about 40 ms each, with their level in dB relative to full scale. */
  readonly heard: (samples: Float32Array, levelDb: number, rateHz: number) => void;
  /** At each change; it begins as `sound`. A muted microphone is told within a second, a silent one within two. */
  readonly state?: (state: SoundState) => void;
  /** Unplugged, or taken away: it is closed. */
  readonly lost?: () => void;
}

/** Which microphone. */
export interface MicrophoneOptions {
  /** Which, by its `MediaDeviceInfo.deviceId`; the browser's usual one by default. */
  readonly deviceId?: string;
}

const asItIs = { echoCancellation: false, autoGainControl: false, noiseSuppression: false };

/** Asks for permission where it was not given yet. What goes wrong is a `MicrophoneError`. */
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
    let told: SoundState = "sound";
    const tell = (now: SoundState) => {
      if (!open || now === told) return;
      told = now;
      state?.(now);
    };
    // What the operating system mutes sends nothing at all; samples tell of the rest.
    track.addEventListener("mute", () => tell("muted"));
    if (track.muted) tell("muted");
    const capture = new AudioWorkletNode(context, "capture", { numberOfOutputs: 0 });
    capture.port.addEventListener("message", ({ data }) => {
      if (!open) return;
      const samples = data as Float32Array;
      const levelDb = levelOf(samples);
      tell(track.muted ? "muted" : watch.push(samples, levelDb));
      heard(samples, levelDb, context.sampleRate);
    });
    capture.port.start();
    context.createMediaStreamSource(stream).connect(capture);
    await started(context);
  } catch (error) {
    await close();
    throw error instanceof MicrophoneError ? error : new MicrophoneError("other", (error as Error).message);
  }
  return { rateHz: context.sampleRate, close };
}

const longestStartMs = 5000;

/** Firefox waits for ever where the machine has no audio output. */
async function started(context: AudioContext): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const refuse = () => reject(new MicrophoneError("busy", "the audio device does not start"));
    timer = setTimeout(refuse, longestStartMs);
  });
  await Promise.race([context.resume(), late]).finally(() => clearTimeout(timer));
}

/** At the rate of the device: nothing is resampled but by the kernels. */
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
  // Absent on pages that a browser does not trust.
  if (!navigator.mediaDevices) throw new MicrophoneError("insecure", "no secure context");
  try {
    return await navigator.mediaDevices.getUserMedia({
      audio: { ...asItIs, ...(deviceId === undefined ? {} : { deviceId: { exact: deviceId } }) },
    });
  } catch (error) {
    const { name, message } = error as DOMException;
    throw new MicrophoneError(problemOf(name), message || name);
  }
}

function problemOf(name: string): MicrophoneProblem {
  if (name === "NotAllowedError" || name === "SecurityError") return "refused";
  if (name === "NotFoundError" || name === "OverconstrainedError") return "none";
  return name === "NotReadableError" || name === "AbortError" ? "busy" : "other";
}
