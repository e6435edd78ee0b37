/**
 * Synthesized voices for experiments and tests: glottal pulses through formants; each speaker has a different pitch, vocal tract and rhythm.
 * The same arguments give the same samples. No corpus is needed.
 */

export interface Voice {
  /** Any integer; it determines pitch, tract length, breathiness and syllable rate. */
  readonly speaker: number;
  readonly seconds: number;
  readonly rateHz?: number;
  /** Determines what is said and how; the speaker stays the same. */
  readonly seed?: number;
  /** Level of the speech without pauses, dB relative to a full-scale square wave. */
  readonly levelDb?: number;
  /** Silence before the first phrase; 0.3 s by default. */
  readonly leadSeconds?: number;
}

export interface Interval {
  readonly startSeconds: number;
  readonly endSeconds: number;
}

export interface Utterance {
  readonly samples: Float32Array;
  readonly rateHz: number;
  /** The phrases; between them is digital silence. */
  readonly phrases: readonly Interval[];
}

/** Uniform in 0..1, the same sequence for the same seed. */
export const random = (seed: number): (() => number) => mulberry32(Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b));

/** A small seeded generator. */
export function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export function gaussian(uniform: () => number): () => number {
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** First three formants (Hz) of an average adult's vowels: i e a o u schwa ae. */
const VOWELS = [
  [290, 2250, 2950],
  [430, 2000, 2700],
  [760, 1250, 2550],
  [480, 860, 2500],
  [320, 780, 2350],
  [500, 1500, 2500],
  [660, 1720, 2450],
] as const;

interface Phone {
  readonly startSeconds: number;
  readonly endSeconds: number;
  readonly formants: readonly number[];
  readonly voicing: number;
  readonly friction: number;
  /** Centre of the friction noise, Hz. */
  readonly frictionHz: number;
}

interface Speaker {
  readonly pitchHz: number;
  readonly tract: number;
  readonly breath: number;
  readonly syllablesPerSecond: number;
  readonly openQuotient: number;
  readonly colour: readonly number[];
}

function speakerOf(number: number): Speaker {
  const draw = random(number * 7919 + 17);
  const female = draw() < 0.5;
  return {
    pitchHz: female ? 165 + 75 * draw() : 85 + 60 * draw(),
    tract: (female ? 1.1 : 0.94) + 0.16 * (draw() - 0.5),
    breath: 0.02 + 0.06 * draw(),
    syllablesPerSecond: 3.6 + 1.8 * draw(),
    openQuotient: 0.45 + 0.25 * draw(),
    colour: Array.from({ length: 5 }, () => 0.94 + 0.12 * draw()),
  };
}

function plan(
  speaker: Speaker,
  seconds: number,
  leadSeconds: number,
  draw: () => number,
): { phones: Phone[]; phrases: Interval[] } {
  const phones: Phone[] = [];
  const phrases: Interval[] = [];
  let at = leadSeconds;
  while (at < seconds - 0.35) {
    const start = at;
    const syllables = 3 + Math.floor(6 * draw());
    for (let s = 0; s < syllables && at < seconds - 0.3; s++) {
      const length = (0.75 + 0.5 * draw()) / speaker.syllablesPerSecond;
      const vowel = VOWELS[Math.floor(draw() * VOWELS.length)] ?? VOWELS[0];
      const formants = [...vowel, 3500, 4500].map((hz, i) => hz * speaker.tract * (speaker.colour[i] ?? 1));
      const kind = draw();
      const onset = Math.min(0.4 * length, 0.05 + 0.06 * draw());
      const consonant = { startSeconds: at, endSeconds: at + onset, formants };
      if (kind < 0.35) phones.push({ ...consonant, voicing: 0, friction: 0.5, frictionHz: 3000 + 3500 * draw() });
      else if (kind < 0.6)
        phones.push({ ...consonant, voicing: 0.05, friction: 0.25, frictionHz: 1500 + 2500 * draw() });
      else if (kind < 0.85) {
        const nasal = formants.map((hz, i) => (i === 0 ? 270 * speaker.tract : hz * 0.95));
        phones.push({ ...consonant, formants: nasal, voicing: 0.45, friction: 0, frictionHz: 3000 });
      } else phones.push({ ...consonant, voicing: 0.8, friction: 0, frictionHz: 3000 });
      phones.push({
        startSeconds: at + onset,
        endSeconds: at + length,
        formants,
        voicing: 1,
        friction: 0,
        frictionHz: 3000,
      });
      at += length;
    }
    phrases.push({ startSeconds: start, endSeconds: Math.min(at, seconds) });
    at += 0.3 + 0.5 * draw();
  }
  return { phones, phrases };
}

/** A second-order resonance with unit gain at 0 Hz. */
class Resonance {
  private y1 = 0;
  private y2 = 0;
  private a = 1;
  private b = 0;
  private c = 0;
  tune(hz: number, bandwidthHz: number, rateHz: number): void {
    this.c = -Math.exp((-2 * Math.PI * bandwidthHz) / rateHz);
    this.b = 2 * Math.exp((-Math.PI * bandwidthHz) / rateHz) * Math.cos((2 * Math.PI * hz) / rateHz);
    this.a = 1 - this.b - this.c;
  }
  next(x: number): number {
    const y = this.a * x + this.b * this.y1 + this.c * this.y2;
    this.y2 = this.y1;
    this.y1 = y;
    return y;
  }
}

export function utter({
  speaker: number,
  seconds,
  rateHz = 16000,
  seed = 1,
  levelDb = -26,
  leadSeconds = 0.3,
}: Voice): Utterance {
  const speaker = speakerOf(number);
  const draw = random(seed * 104729 + number * 31);
  const normal = gaussian(random(seed * 15485863 + number));
  const { phones, phrases } = plan(speaker, seconds, leadSeconds, draw);
  const samples = new Float32Array(Math.round(seconds * rateHz));
  const tract = Array.from({ length: 5 }, () => new Resonance());
  const mouth = new Resonance();
  const bandwidths = [60, 90, 130, 200, 280];
  const formants = [500, 1500, 2500, 3500, 4500];
  let voicing = 0;
  let friction = 0;
  let phase = 0;
  let periodHz = speaker.pitchHz;
  let flow = 0;
  let phoneIndex = 0;
  let phraseIndex = 0;
  const control = Math.max(1, Math.round(rateHz / 500));
  const glide = 1 - Math.exp(-1 / (0.012 * 500));
  let energy = 0;
  let count = 0;
  for (let i = 0; i < samples.length; i++) {
    const t = i / rateHz;
    while (phoneIndex < phones.length && t >= (phones[phoneIndex]?.endSeconds ?? 0)) phoneIndex++;
    while (phraseIndex < phrases.length && t >= (phrases[phraseIndex]?.endSeconds ?? 0)) phraseIndex++;
    const phone = phones[phoneIndex];
    const phrase = phrases[phraseIndex];
    if (!phone || !phrase || t < phrase.startSeconds) {
      voicing = friction = flow = 0;
      continue;
    }
    if (i % control === 0) {
      voicing += (phone.voicing - voicing) * glide;
      friction += (phone.friction - friction) * glide;
      for (let f = 0; f < 5; f++) {
        formants[f] = (formants[f] ?? 0) + ((phone.formants[f] ?? 0) - (formants[f] ?? 0)) * glide;
        const hz = formants[f] ?? 0;
        if (hz < 0.47 * rateHz) tract[f]?.tune(hz, bandwidths[f] ?? 100, rateHz);
      }
      mouth.tune(Math.min(phone.frictionHz, 0.4 * rateHz), 1200, rateHz);
    }
    phase += periodHz / rateHz;
    if (phase >= 1) {
      phase -= 1;
      const through = (t - phrase.startSeconds) / (phrase.endSeconds - phrase.startSeconds);
      // Pitch falls through a phrase, moves with the syllables and jitters from period to period.
      periodHz = speaker.pitchHz * (1.12 - 0.25 * through + 0.06 * Math.sin(9 * t + number) + 0.008 * normal());
    }
    // Rosenberg's pulse: the flow opens as a raised cosine and closes twice as fast; its derivative excites the tract.
    const open = speaker.openQuotient;
    const x = phase / open;
    const pulse =
      x < 0.66 ? 0.5 - 0.5 * Math.cos((Math.PI * x) / 0.66) : x < 1 ? Math.cos((0.5 * Math.PI * (x - 0.66)) / 0.34) : 0;
    const white = normal();
    let y = voicing * ((pulse - flow) * (rateHz / 1600) + speaker.breath * pulse * white);
    flow = pulse;
    for (let f = 0; f < 5; f++) if ((formants[f] ?? 0) < 0.47 * rateHz) y = tract[f]?.next(y) ?? y;
    y += friction * 0.6 * (mouth.next(white) + 0.1 * white);
    const edge = Math.min(1, (t - phrase.startSeconds) / 0.01, Math.max(0, phrase.endSeconds - t) / 0.02);
    samples[i] = y * edge;
    energy += (y * edge) ** 2;
    count++;
  }
  const gain = 10 ** (levelDb / 20) / Math.sqrt(energy / Math.max(1, count) || 1);
  for (let i = 0; i < samples.length; i++) samples[i] = Math.max(-1, Math.min(1, (samples[i] ?? 0) * gain));
  return { samples, rateHz, phrases };
}

export function speak(voice: Voice): Float32Array {
  return utter(voice).samples;
}

export type NoiseColour = "white" | "pink" | "brown";

/** Gaussian noise of `levelDb` rms, dB relative to a full-scale square wave. */
export function noise(
  seconds: number,
  rateHz = 16000,
  seed = 1,
  levelDb = -40,
  colour: NoiseColour = "white",
): Float32Array {
  const normal = gaussian(random(seed * 2654435761 + 99));
  const samples = new Float32Array(Math.round(seconds * rateHz));
  // Kellet's filter for pink noise; a leaky sum for brown.
  let b0 = 0;
  let b1 = 0;
  let b2 = 0;
  let sum = 0;
  let energy = 0;
  for (let i = 0; i < samples.length; i++) {
    const white = normal();
    b0 = 0.99765 * b0 + 0.099046 * white;
    b1 = 0.963 * b1 + 0.2965164 * white;
    b2 = 0.57 * b2 + 1.0526913 * white;
    sum = 0.995 * sum + 0.1 * white;
    const y = colour === "white" ? white : colour === "pink" ? b0 + b1 + b2 + 0.1848 * white : sum;
    samples[i] = y;
    energy += y * y;
  }
  const gain = 10 ** (levelDb / 20) / Math.sqrt(energy / Math.max(1, samples.length) || 1);
  for (let i = 0; i < samples.length; i++) samples[i] = Math.max(-1, Math.min(1, (samples[i] ?? 0) * gain));
  return samples;
}

/** Mean power of all samples that are not digital silence. */
export function activePower(samples: Float32Array): number {
  let energy = 0;
  let count = 0;
  for (const x of samples) {
    if (x === 0) continue;
    energy += x * x;
    count++;
  }
  return count ? energy / count : 0;
}

/** Adds noise at the given SNR (pauses are not counted as speech); noise that is too short is repeated. */
export function mix(speech: Float32Array, noiseSamples: Float32Array, snrDb: number): Float32Array {
  const gain = Math.sqrt(activePower(speech) / (activePower(noiseSamples) || 1) / 10 ** (snrDb / 10));
  return speech.map((x, i) => x + gain * (noiseSamples[i % noiseSamples.length] ?? 0));
}
