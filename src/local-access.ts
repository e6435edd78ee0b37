/** What `Voiceprints` needs beyond the contract, from a processor in this process. */
import { highestRateHz, lowestRateHz } from "./audio/audio-error.js";
import type { VoiceprintsProcessor } from "./processor/voiceprints-processor.js";
import type { LiveAccess } from "./voiceprints.js";

export const localAccess = (processor: VoiceprintsProcessor): LiveAccess => ({
  async listen(request, options) {
    const check = await processor.openLiveAnalysis(request, options);
    return {
      push: async (samples) => (await check.push(samples)).result,
      finish: () => check.finish(),
      close: () => check.close(),
      notCompared: check.notCompared,
    };
  },
  listenToEnroll: (request, options) => processor.openLiveEnrollment(request, options),
  rates: [lowestRateHz, highestRateHz],
  close: () => processor.close(),
});
