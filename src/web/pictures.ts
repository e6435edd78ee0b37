/** Waveform and mel spectrogram; new sound is drawn at the right and moves left. */
import { joined } from "../audio/joined.js";
import { element } from "./dom.js";
import { MelSpectrogram, melBands } from "./mel-spectrogram.js";
import { strings } from "./strings.js";

/** Number of 10 ms columns: six seconds. */
const columns = 600;
const waveHeight = 96;
const frameBudgetMs = 8;

interface Colours {
  readonly paper: readonly number[];
  readonly ink: readonly number[];
}

const canvas = (height: number, label: string) =>
  element("canvas", { width: columns, height, role: "img", "aria-label": label });

export class Pictures {
  readonly element: HTMLElement;
  readonly #wave = canvas(waveHeight, strings.pictures.waveform);
  readonly #mel = canvas(melBands, strings.pictures.spectrogram);
  readonly #wavePen = this.#wave.getContext("2d")!;
  readonly #melPen = this.#mel.getContext("2d")!;
  #spectrogram = new MelSpectrogram(48_000);
  #rateHz = 48_000;
  #pieces: Float32Array[] = [];
  #frame = 0;
  /** Samples of the waveform column that is not complete yet. */
  #pending = new Float32Array(0);

  constructor() {
    this.element = element("div", { class: "pictures" }, this.#wave, this.#mel);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      // Without a place in the page, it has no colors.
      if (this.element.isConnected) this.clear();
    });
  }

  begin(rateHz: number): void {
    this.#rateHz = rateHz;
    this.#spectrogram = new MelSpectrogram(rateHz);
    this.#pieces = [];
    this.#pending = new Float32Array(0);
    this.clear();
  }

  clear(): void {
    const { paper } = this.#colours();
    for (const pen of [this.#wavePen, this.#melPen]) {
      pen.fillStyle = `rgb(${paper.join(" ")})`;
      pen.fillRect(0, 0, columns, pen.canvas.height);
    }
  }

  push(samples: Float32Array): void {
    this.#pieces.push(samples);
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  /** Draws as much as fits into one frame: a dropped file must not block the page, and the picture must not lag behind the voice. */
  #draw(): void {
    this.#frame = 0;
    const colours = this.#colours();
    const until = performance.now() + frameBudgetMs;
    do {
      const piece = this.#pieces.shift();
      if (!piece) return;
      this.#drawSpectrogram(this.#spectrogram.push(piece), colours);
      this.#drawWaveform(piece, colours);
    } while (performance.now() < until);
    if (this.#pieces.length > 0) this.#frame = requestAnimationFrame(() => this.#draw());
  }

  #drawSpectrogram(made: readonly Float32Array[], { paper, ink }: Colours): void {
    if (made.length === 0) return;
    const width = Math.min(made.length, columns);
    const image = this.#melPen.createImageData(width, melBands);
    for (let x = 0; x < width; x++) {
      const column = made[made.length - width + x]!;
      for (let y = 0; y < melBands; y++) {
        const level = column[melBands - 1 - y]!;
        const at = 4 * (y * width + x);
        for (let c = 0; c < 3; c++) image.data[at + c] = paper[c]! + (ink[c]! - paper[c]!) * level;
        image.data[at + 3] = 255;
      }
    }
    this.#melPen.drawImage(this.#mel, -width, 0);
    this.#melPen.putImageData(image, columns - width, 0);
  }

  #drawWaveform(piece: Float32Array, { paper, ink }: Colours): void {
    const step = Math.round(this.#rateHz / 100);
    const all = joined([this.#pending, piece]);
    const width = Math.min(columns, Math.floor(all.length / step));
    const first = Math.floor(all.length / step) - width;
    const pen = this.#wavePen;
    pen.drawImage(this.#wave, -width, 0);
    pen.fillStyle = `rgb(${paper.join(" ")})`;
    pen.fillRect(columns - width, 0, width, waveHeight);
    pen.fillStyle = `rgb(${ink.join(" ")})`;
    for (let x = 0; x < width; x++) {
      let peak = 0;
      for (let i = (first + x) * step; i < (first + x + 1) * step; i++) peak = Math.max(peak, Math.abs(all[i]!));
      const height = Math.max(1, Math.sqrt(Math.min(1, peak)) * (waveHeight - 4));
      pen.fillRect(columns - width + x, (waveHeight - height) / 2, 1, height);
    }
    this.#pending = all.slice((first + width) * step);
  }

  #colours(): Colours {
    const { backgroundColor, color } = getComputedStyle(this.element);
    const rgb = (text: string) => text.match(/\d+/g)!.map(Number);
    return { paper: rgb(backgroundColor), ink: rgb(color) };
  }
}
