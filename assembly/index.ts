// The ABI: every export of the kernels, and nothing else.
export { reserve, seal } from "./memory";
export { exp, log, sigmoid, tanh } from "./math/elementwise";
export {
  galleryBatch,
  galleryCapacity,
  galleryForgetQuery,
  galleryGrow,
  galleryHits,
  galleryInput,
  galleryListed,
  galleryQuery,
  gallerySearch,
  gallerySearchListed,
  galleryStore,
  galleryWipe,
  reserveGallery,
} from "./score/gallery";
export {
  reserveScoring,
  scoringKept,
  scoringMean,
  scoringMostRows,
  scoringOrder,
  scoringProbe,
  scoringRows,
  scoringScores,
  scoringWeights,
  wipeScoring,
} from "./score/workspace";
export { addRowsToMean, clearMean, finishMean, trainTemplate } from "./score/template";
export { cosine } from "./score/cosine";
export {
  calibratedQuality,
  calibratedRatio,
  calibratedReliability,
  calibrationMaxTerms,
  calibrationTerms,
  impostorCosine,
  reserveCalibration,
  setQuality,
} from "./score/calibration";
export { reserveVoiceClass, voiceClass, voiceClassAxis, voiceClassQuantiles } from "./score/voice-class";
export { splitSmallerSpeech, splitVoices } from "./score/speakers";
export {
  CAMPPLUS,
  EMBEDDED,
  NOT_FINITE,
  NOT_LOADED,
  RESNET34,
  speakerBins,
  speakerDimensions,
  speakerEmbed,
  speakerEmbedding,
  speakerFeatures,
  speakerMaxFrames,
  speakerMinFrames,
  speakerProgram,
  speakerProgramCapacity,
  speakerReady,
  speakerReserve,
  speakerStaging,
  speakerTake,
  speakerTensorBytes,
  speakerTensors,
  speakerWipe,
  TDNN,
  TOO_FEW_FRAMES,
  TOO_MANY_FRAMES,
} from "./speaker/abi";
export { PLAYBACK, SYNTHETIC } from "./spoof/config";
export {
  attackFeatures,
  attackMaxFrames,
  attackMinFrames,
  attackReserve,
  attackScore,
  attackStaging,
  attackTake,
  attackTensorBytes,
  attackTensors,
  attackWipe,
} from "./spoof/abi";
export { hammingLogMel, logMel, logMelFrames } from "./dsp/log-mel";
export { detail, detailBins } from "./dsp/detail";
export { resamplerPush, resamplerStart, resamplerWait } from "./dsp/resample";
// Streaming of a recording: dsp/stream.ts describes how to use it.
export {
  BAD_RATE,
  BAD_WINDOW,
  DETAIL_ROWS,
  featureBins,
  HAMMING_ROWS,
  inputCapacity,
  inputPtr,
  LIMIT_REACHED,
  marksCapacity,
  marksPtr,
  measuresLength,
  measuresPtr,
  MEL_ROWS,
  streamDecidedFrames,
  streamFinish,
  streamPeek,
  streamPush,
  streamPushUntil,
  streamSpeechFrames,
  streamStart,
  streamStateBytes,
  streamStateCapacity,
  streamStatePtr,
  streamStatus,
  streamTake,
  streamWipe,
  WINDOW_FULL,
  windowBins,
  windowCapacity,
  windowFrames,
  windowPtr,
  windowTimesPtr,
} from "./dsp/stream";
