/** Operations that decode and analyze a recording. They go through the queue. */
export const AUDIO_OPERATIONS: ReadonlySet<string> = new Set([
  "ProcessAudio",
  "Verify",
  "Identify",
  "DetectKnownFraudsters",
  "AnalyzeAudio",
]);
