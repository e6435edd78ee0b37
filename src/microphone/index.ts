/** The browser's microphone, for authors of web pages: `import { openMicrophone, startRecording } from "vivavoce/microphone"`. */
export {
  type Microphone,
  MicrophoneError,
  type MicrophoneEvents,
  type MicrophoneOptions,
  type MicrophoneProblem,
  openMicrophone,
} from "./microphone.js";
export { type Recorder, type RecorderEvents, startRecording } from "./recorder.js";
export { levelOf, type SoundState } from "./sound-state.js";
