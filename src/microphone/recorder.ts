/** A recording of the microphone as a whole, as `verify` and `enroll` take it. */
import { joined } from "./joined.js";
import { type MicrophoneOptions, openMicrophone } from "./microphone.js";
import type { SoundState } from "./sound-state.js";

/** What happens while it records. */
export interface RecorderEvents {
  /** About 25 times a second: dB relative to full scale, and how long the recording is. */
  readonly level?: (levelDb: number, seconds: number) => void;
  readonly state?: (state: SoundState) => void;
  readonly lost?: () => void;
}

/** A recording that goes on until it is stopped. */
export interface Recorder {
  readonly rateHz: number;
  /** Ends it, and gives what was recorded: mono, -1..1. */
  stop(): Promise<{ readonly samples: Float32Array; readonly rateHz: number }>;
}

/** Opens the microphone and records. */
export async function startRecording(events: RecorderEvents = {}, options: MicrophoneOptions = {}): Promise<Recorder> {
  const pieces: Float32Array[] = [];
  let length = 0;
  const { rateHz, close } = await openMicrophone(
    {
      heard(samples, levelDb, atHz) {
        pieces.push(samples);
        length += samples.length;
        events.level?.(levelDb, length / atHz);
      },
      ...(events.state && { state: events.state }),
      ...(events.lost && { lost: events.lost }),
    },
    options,
  );
  return {
    rateHz,
    async stop() {
      await close();
      return { samples: joined(pieces.splice(0)), rateHz };
    },
  };
}
