/**
 * The one file that touches WebAssembly memory. Values are copied in and copied out; no view leaves, because the memory is
 * written over by the next call (and, while loading, grows and detaches every view).
 */
type Pointer = number;

/** The exports of assembly/index.ts that the engine calls; each is documented where it is written. */
export interface KernelExports {
  reserve(bytes: number): Pointer;
  seal(): void;

  reserveScoring(dimensions: number): void;
  scoringMostRows(): number;
  scoringRows(): Pointer;
  scoringWeights(): Pointer;
  scoringOrder(): Pointer;
  scoringScores(): Pointer;
  scoringKept(): Pointer;
  scoringMean(): Pointer;
  scoringProbe(): Pointer;
  wipeScoring(): void;
  trainTemplate(rows: number, floor: number): number;
  clearMean(): void;
  addRowsToMean(rows: number): void;
  finishMean(): number;
  cosine(x: Pointer, y: Pointer, dimensions: number): number;
  reserveCalibration(): void;
  calibrationMaxTerms(): number;
  calibrationTerms(): Pointer;
  setQuality(tSpeech: number, tSnr: number, tBand: number, pSpeech: number, pSnr: number, pBand: number): void;
  calibratedRatio(cosine: number, first: number, terms: number): number;
  calibratedQuality(first: number, terms: number): number;
  calibratedReliability(first: number, terms: number): number;
  impostorCosine(rate: number, center: number, spread: number): number;
  reserveVoiceClass(dimensions: number, quantiles: number): void;
  voiceClassAxis(): Pointer;
  voiceClassQuantiles(): Pointer;
  voiceClass(): number;
  splitVoices(rows: number): number;
  splitSmallerSpeech(): number;

  reserveGallery(dimensions: number, eightBits: number): void;
  galleryGrow(rows: number): void;
  galleryCapacity(): number;
  galleryBatch(): number;
  galleryInput(): Pointer;
  galleryListed(): Pointer;
  galleryHits(): Pointer;
  galleryStore(row: number): void;
  galleryWipe(row: number): void;
  galleryQuery(): void;
  gallerySearch(first: number, rows: number, floor: number): number;
  gallerySearchListed(rows: number, floor: number): number;
  galleryForgetQuery(): void;

  inputPtr(): Pointer;
  inputCapacity(): number;
  featureBins(): number;
  detailBins(): number;
  windowPtr(): Pointer;
  windowBins(): number;
  windowFrames(): number;
  windowTimesPtr(): Pointer;
  measuresPtr(): Pointer;
  measuresLength(): number;
  streamStatePtr(): Pointer;
  streamStateBytes(): number;
  streamStateCapacity(): number;
  streamStatus(): number;
  streamSpeechFrames(): number;
  streamStart(rateHz: number, windowFrames: number, limitFrames: number, rows: number, lowered: number): number;
  streamPushUntil(at: number, samples: number, speechFrames: number): number;
  streamTake(): void;
  streamPeek(): number;
  streamWipe(): void;

  attackReserve(maxFrames: number): number;
  attackTensors(kind: number): number;
  attackTensorBytes(kind: number, tensor: number): number;
  attackStaging(): Pointer;
  attackTake(kind: number, tensor: number): number;
  attackMinFrames(): number;
  attackMaxFrames(): number;
  attackFeatures(): Pointer;
  attackScore(kind: number, frames: number): number;
  attackWipe(): void;

  speakerReserve(architecture: number, maxFrames: number, floor: number): number;
  speakerTensors(): number;
  speakerTensorBytes(tensor: number): number;
  speakerStaging(): Pointer;
  speakerTake(tensor: number): number;
  speakerReady(): number;
  speakerBins(): number;
  speakerMinFrames(): number;
  speakerMaxFrames(): number;
  speakerFeatures(): Pointer;
  speakerDimensions(): number;
  speakerEmbedding(): Pointer;
  speakerEmbed(frames: number): number;
  speakerWipe(): void;
}

type Kernel = (...values: never[]) => number | undefined;

export class Kernels {
  readonly run: KernelExports;
  readonly #memory: WebAssembly.Memory;

  /** A new instance with a memory of its own. The binary has no imports. */
  constructor(module: WebAssembly.Module) {
    const exports = new WebAssembly.Instance(module).exports;
    this.run = exports as unknown as Record<string, Kernel> as unknown as KernelExports;
    this.#memory = exports.memory as WebAssembly.Memory;
  }

  get memoryBytes(): number {
    return this.#memory.buffer.byteLength;
  }

  write(at: Pointer, bytes: Uint8Array): void {
    new Uint8Array(this.#memory.buffer, at, bytes.length).set(bytes);
  }

  writeFloats(at: Pointer, values: ArrayLike<number>): void {
    new Float32Array(this.#memory.buffer, at, values.length).set(values);
  }

  writeIntegers(at: Pointer, values: ArrayLike<number>): void {
    new Int32Array(this.#memory.buffer, at, values.length).set(values);
  }

  read(at: Pointer, bytes: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#memory.buffer, at, bytes).slice() as Uint8Array<ArrayBuffer>;
  }

  readFloats(at: Pointer, length: number): Float32Array<ArrayBuffer> {
    return new Float32Array(this.#memory.buffer, at, length).slice() as Float32Array<ArrayBuffer>;
  }

  readDoubles(at: Pointer, length: number): Float64Array<ArrayBuffer> {
    return new Float64Array(this.#memory.buffer, at, length).slice() as Float64Array<ArrayBuffer>;
  }

  readIntegers(at: Pointer, length: number): Int32Array<ArrayBuffer> {
    return new Int32Array(this.#memory.buffer, at, length).slice() as Int32Array<ArrayBuffer>;
  }
}
