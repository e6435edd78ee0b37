/** Runs on the audio thread: passes on the microphone's audio, mixed to one channel, in chunks of about 40 ms. */
declare const sampleRate: number;
declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;
declare abstract class AudioWorkletProcessor {
  readonly port: MessagePort;
  abstract process(inputs: readonly (readonly Float32Array[])[]): boolean;
}

const pieceSeconds = 0.04;

class Capture extends AudioWorkletProcessor {
  #piece = new Float32Array(Math.round(sampleRate * pieceSeconds));
  #filled = 0;

  process([channels = []]: readonly (readonly Float32Array[])[]): boolean {
    const frames = channels[0]?.length ?? 0;
    for (let i = 0; i < frames; i++) {
      let sum = 0;
      for (const channel of channels) sum += channel[i]!;
      this.#piece[this.#filled++] = sum / channels.length;
      if (this.#filled === this.#piece.length) this.#send();
    }
    return true;
  }

  #send(): void {
    const piece = this.#piece;
    this.#piece = new Float32Array(piece.length);
    this.#filled = 0;
    this.port.postMessage(piece, [piece.buffer]);
  }
}

registerProcessor("capture", Capture);
