/** The microphone, at its own rate and as it is: what a telephone would do to the sound is left out. */
export type MicrophoneProblem = "refused" | "none" | "busy" | "insecure" | "other";

export class MicrophoneError extends Error {
  override readonly name = "MicrophoneError";
  constructor(
    readonly problem: MicrophoneProblem,
    detail: string,
  ) {
    super(detail);
  }
}

export interface Microphone {
  readonly rateHz: number;
  close(): Promise<void>;
}

export interface MicrophoneEvents {
  /** Mono, -1..1, about 40 ms each. */
  readonly heard: (samples: Float32Array) => void;
  /** Unplugged, or taken away. */
  readonly lost: () => void;
}

const asItIs = { echoCancellation: false, autoGainControl: false, noiseSuppression: false };

export async function openMicrophone({ heard, lost }: MicrophoneEvents): Promise<Microphone> {
  const stream = await askForStream();
  const [track] = stream.getAudioTracks();
  if (!track) throw new MicrophoneError("none", "the stream has no audio");
  const { sampleRate } = track.getSettings();
  const context = new AudioContext(sampleRate ? { sampleRate } : {});
  let open = true;
  const close = async () => {
    if (!open) return;
    open = false;
    track.stop();
    await context.close();
  };
  track.addEventListener("ended", () => {
    if (!open) return;
    lost();
    void close();
  });
  try {
    await context.audioWorklet.addModule(new URL("./capture.js", import.meta.url));
    const capture = new AudioWorkletNode(context, "capture", { numberOfOutputs: 0 });
    capture.port.addEventListener("message", ({ data }) => {
      if (open) heard(data as Float32Array);
    });
    capture.port.start();
    context.createMediaStreamSource(stream).connect(capture);
    await context.resume();
  } catch (error) {
    await close();
    throw new MicrophoneError("other", (error as Error).message);
  }
  return { rateHz: context.sampleRate, close };
}

async function askForStream(): Promise<MediaStream> {
  // Absent on pages that a browser does not trust.
  if (!navigator.mediaDevices) throw new MicrophoneError("insecure", "no secure context");
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: asItIs });
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
