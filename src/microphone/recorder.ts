/** Records the microphone into one recording, as `verify` and `enroll` take it. */
import { type MicrophoneEvents, type MicrophoneOptions, openMicrophone } from "./microphone.js";

/** Events while it records. */
export interface RecorderEvents extends Pick<MicrophoneEvents, "state"> {
  /** Called about 25 times a second with the level (dB relative to full scale) and the length so far. */
  readonly level?: (levelDb: number, seconds: number) => void;
  /** The microphone was unplugged or taken away; `stop` still returns what it recorded before. */
  readonly lost?: () => void;
}

/** A recording in progress. */
export interface Recorder {
  readonly rateHz: number;
  /** Ends it and returns the recording: mono, -1..1. Called again (a double click), it returns the same recording. */
  stop(): Promise<{ readonly samples: Float32Array; readonly rateHz: number }>;
}

/** Opens the microphone and records. */
export async function startRecording(events: RecorderEvents = {}, options: MicrophoneOptions = {}): Promise<Recorder> {
  const pieces: Float32Array[] = [];
  let length = 0;
  const { rateHz, close } = await openMicrophone(
    {
      ...events,
      heard(samples, levelDb, atHz) {
        pieces.push(samples);
        length += samples.length;
        events.level?.(levelDb, length / atHz);
      },
    },
    options,
  );
  const recording = async () => {
    await close();
    // Without code of other folders: pages may serve this one alone.
    const bytes = await new Blob(pieces.splice(0) as BlobPart[]).arrayBuffer();
    return { samples: new Float32Array(bytes), rateHz };
  };
  let stopped: ReturnType<typeof recording> | null = null;
  return {
    rateHz,
    stop() {
      stopped ??= recording();
      return stopped;
    },
  };
}
