/** What `Voiceprints` needs beyond the contract, from a processor in this process. */
import type { VoiceprintsProcessor } from "./processor/voiceprints-processor.js";
import type { LiveAccess } from "./voiceprints.js";

export const localAccess = (processor: VoiceprintsProcessor): LiveAccess => ({
  listen: (request, options) => processor.openLiveAnalysis(request, options),
  listenToEnroll: (request, options) => processor.openLiveEnrollment(request, options),
  close: () => processor.close(),
});
