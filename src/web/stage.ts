/** The recording area, shared by all modes: the ring, its text, the pictures, and the drop target for files. */

import { joined } from "../audio/joined.js";
import type { Score, Template } from "../engine/port.js";
import { levelOf, type Microphone, MicrophoneError, openMicrophone, type SoundState } from "../microphone/index.js";
import { adviceFor, type Limits } from "./advice.js";
import { element } from "./dom.js";
import { failureText } from "./failure.js";
import { LiveAnalysis } from "./live-analysis.js";
import { Meters } from "./meters.js";
import { Pictures } from "./pictures.js";
import { Ring } from "./ring.js";
import { strings } from "./strings.js";
import type { Samples, Voices } from "./voices.js";

/** What a recording is for. */
export interface Task {
  readonly purpose: "enroll" | "verify";
  /** Net speech that fills the ring and ends the recording. */
  readonly targetSeconds: number;
  readonly severalFiles: boolean;
  /** What to read or say. */
  sentence(): string;
  /** What the user must do first, or `null`. */
  obstacle(): string | null;
  /** Templates to score against during the recording. */
  templates(): readonly Template[];
  begun(): void;
  scored(templates: readonly Template[], scores: readonly Score[]): void;
  taken(audio: Samples): Promise<void>;
}

/** Long enough for everyone; a forgotten recording ends here. */
const longestSeconds = 30;

/** The pictures show this much of the end of a file. */
const shownSeconds = 6;

class Take {
  seconds = 0;
  microphone: Microphone | null = null;
  analysis: LiveAnalysis | null = null;
  sound: SoundState = "sound";

  constructor(
    readonly pieces: Float32Array[] = [],
    public rateHz = 0,
  ) {}
}

export class Stage {
  /** The ring, with the sentence to say above it and advice below. */
  readonly element: HTMLElement;
  /** Meters, pictures and the drop target. */
  readonly details: HTMLElement;
  readonly #ring = new Ring(() => this.#pressed());
  readonly #meters = new Meters();
  readonly #pictures = new Pictures();
  readonly #sentence = element("p", { class: "sentence" });
  readonly #advice = element("p", { class: "advice", role: "status" });
  readonly #picker = element("input", {
    type: "file",
    accept: "audio/*,.wav,.mp3,.m4a,.mp4,.ogg,.opus,.webm,.flac",
    class: "picker",
    id: "files",
  });
  #task: Task | null = null;
  #take: Take | null = null;
  #busy = false;
  /** Grows whenever the mode or the person changes: files chosen before that are not for the new one. */
  #turn = 0;
  #limits: Limits | null = null;

  constructor(private readonly voices: () => Promise<Voices>) {
    this.#picker.addEventListener("change", () => {
      void this.#takeFiles([...(this.#picker.files ?? [])]);
      this.#picker.value = "";
    });
    const drop = element(
      "div",
      { class: "row drop" },
      element("label", { for: "files", class: "choose" }, strings.record.choose),
      this.#picker,
      element("span", {}, strings.record.drop),
    );
    this.element = element("section", { class: "stage" }, this.#sentence, this.#ring.element, this.#advice);
    this.details = element("section", { class: "details" }, this.#meters.element, this.#pictures.element, drop);
    this.#acceptDrops();
  }

  get task(): Task | null {
    return this.#task;
  }

  /** Ends what was going on for the task before. `null`: the stage is hidden and takes nothing. */
  set task(task: Task | null) {
    void this.#cancel();
    this.#turn++;
    this.#task = task;
    if (!task) return;
    this.#ring.fill(0, task.targetSeconds);
    this.#meters.clear();
    this.#picker.multiple = task.severalFiles;
    this.#sentence.textContent = task.sentence();
    this.say(strings.advice.ready);
  }

  /** Shows the sentence of the task, which has changed; not while the person reads it aloud. */
  refresh(): void {
    if (this.#task && !this.#take) this.#sentence.textContent = this.#task.sentence();
  }

  say(text: string): void {
    // A screen reader speaks it at every change, so unchanged text is not set again.
    if (this.#advice.textContent !== text) this.#advice.textContent = text;
  }

  /** Says it, and scrolls to it: on a phone it is below the fold, and a press of the ring would seem to do nothing. */
  #tell(text: string): void {
    this.say(text);
    this.#advice.scrollIntoView({ block: "nearest" });
  }

  /** Shows a short message to the person; details go to the console. */
  #sayFailure(error: unknown): void {
    console.error(error);
    this.#tell(failureText(error));
  }

  #pressed(): void {
    if (this.#take?.microphone) void this.#finish();
    else if (!this.#busy) void this.#record();
  }

  async #record(): Promise<void> {
    const task = this.#task!;
    const obstacle = task.obstacle();
    if (obstacle !== null) return this.#tell(obstacle);
    this.#busy = true;
    this.#ring.phase = "asking";
    const take = new Take();
    this.#take = take;
    try {
      const microphone = await openMicrophone({
        heard: (samples, levelDb) => this.#received(take, samples, levelDb),
        state: (sound) => {
          take.sound = sound;
          if (this.#take === take) this.say(sound === "sound" ? strings.advice.speak : strings.microphone[sound]);
        },
        lost: () => {
          if (this.#take !== take) return;
          // What was said until then counts, as if the person had pressed Stop.
          if (take.microphone) void this.#finish(strings.microphone.unplugged);
          else void this.#cancel().then(() => this.#tell(strings.microphone.none));
        },
      });
      // The user changed the mode while the browser asked for permission.
      if (this.#take !== take) return void microphone.close();
      take.microphone = microphone;
      this.#begin(take, microphone.rateHz);
      this.#ring.phase = "recording";
      if (take.sound === "sound") this.#tell(strings.advice.speak);
    } catch (error) {
      await this.#cancel();
      this.#tell(explained(error));
    }
  }

  #begin(take: Take, rateHz: number): void {
    const task = this.#task!;
    take.rateHz = rateHz;
    this.#limits = null;
    this.#ring.fill(0, task.targetSeconds);
    this.#meters.clear();
    this.#pictures.begin(rateHz);
    task.begun();
    const voices = this.voices();
    voices.then(
      (ready) => {
        this.#limits = ready.limits(task.purpose, task.targetSeconds);
      },
      () => {},
    );
    take.analysis = new LiveAnalysis(
      voices.then(({ engine }) => engine),
      rateHz,
      () => task.templates(),
      {
        measured: (measures) => {
          if (this.#take !== take || !this.#limits) return;
          this.#ring.fill(measures.netSpeechSeconds, task.targetSeconds);
          this.#meters.measured(measures, this.#limits);
          if (!take.microphone) return;
          if (take.sound === "sound") this.say(strings.advice[adviceFor(measures, this.#limits)]);
          if (measures.netSpeechSeconds >= task.targetSeconds) void this.#finish();
        },
        scored: (templates, scores) => {
          if (this.#take === take) task.scored(templates, scores);
        },
        failed: (error) => {
          if (this.#take === take) void this.#cancel().then(() => this.#sayFailure(error));
        },
      },
    );
  }

  #received(take: Take, samples: Float32Array, levelDb: number): void {
    // The first chunks may arrive before the microphone's rate is known.
    if (this.#take !== take || !take.analysis) return;
    take.pieces.push(samples);
    take.seconds += samples.length / take.rateHz;
    this.#ring.level(Math.min(1, Math.max(0, (levelDb + 55) / 50)));
    this.#meters.level(levelDb);
    this.#pictures.push(samples);
    take.analysis.push(samples);
    if (!this.#limits && take.sound === "sound") this.say(strings.advice.waiting);
    if (take.seconds > longestSeconds) void this.#finish();
  }

  async #finish(afterwards = strings.advice.ready): Promise<void> {
    const take = this.#take;
    if (!take?.microphone) return;
    const { microphone } = take;
    take.microphone = null;
    this.#ring.phase = "working";
    this.say(strings.record.working);
    await microphone.close();
    if (take.pieces.length > 0 || this.#take !== take) return this.#conclude(take, afterwards);
    // It ended before any sound arrived, so there is nothing to check.
    await this.#cancel();
    this.#tell(afterwards);
  }

  async #conclude(take: Take, afterwards = strings.advice.ready): Promise<void> {
    const task = this.#task!;
    try {
      await this.voices();
      await take.analysis?.finish();
      if (this.#take !== take) return;
      this.say("");
      await task.taken({ samples: joined(take.pieces), rateHz: take.rateHz });
    } catch (error) {
      this.#sayFailure(error);
    } finally {
      if (this.#take === take) {
        this.#take = null;
        this.#busy = false;
        this.#ring.phase = "idle";
        this.#sentence.textContent = task.sentence();
        if (this.#advice.textContent === "") this.say(afterwards);
      }
    }
  }

  async #cancel(): Promise<void> {
    const take = this.#take;
    this.#take = null;
    this.#busy = false;
    this.#ring.phase = "idle";
    await Promise.all([take?.microphone?.close(), take?.analysis?.close()]);
  }

  async #takeFiles(files: readonly File[]): Promise<void> {
    const task = this.#task;
    if (!task || files.length === 0) return;
    if (this.#busy) return this.#tell(strings.files.busy);
    const obstacle = task.obstacle();
    if (obstacle !== null) return this.#tell(obstacle);
    const turn = this.#turn;
    this.#busy = true;
    this.#ring.phase = "working";
    for (const file of task.severalFiles ? files : files.slice(0, 1)) {
      this.say(strings.record.working);
      const audio = await this.#read(file);
      if (!audio || this.#turn !== turn) break;
      this.#busy = true;
      this.#ring.phase = "working";
      const take = new Take([audio.samples], audio.rateHz);
      this.#take = take;
      this.#begin(take, audio.rateHz);
      this.#draw(audio);
      this.#meters.level(levelOf(audio.samples.subarray(-shownSeconds * audio.rateHz)));
      take.analysis!.push(audio.samples);
      await this.#conclude(take);
    }
    if (this.#turn !== turn) return;
    if (!this.#take) {
      this.#busy = false;
      this.#ring.phase = "idle";
    }
    if (files.length > 1 && !task.severalFiles) this.say(strings.files.several);
  }

  async #read(file: File): Promise<Samples | null> {
    const { unreadable, why } = strings.files;
    try {
      const read = await (await this.voices()).read(file);
      if ("samples" in read) return read;
      this.#tell(
        read.problem === "unreadable" ? unreadable(file.name, why[read.why]) : strings.files[read.problem](file.name),
      );
    } catch (error) {
      this.#sayFailure(error);
    }
    return null;
  }

  /** Draws the end of a file, in chunks that fit into one frame. */
  #draw({ samples, rateHz }: Samples): void {
    const step = Math.round(rateHz / 25);
    for (let at = Math.max(0, samples.length - shownSeconds * rateHz); at < samples.length; at += step)
      this.#pictures.push(samples.subarray(at, at + step));
  }

  /** Accepts drops on the whole page, because a file that misses the target would make the browser leave the page. */
  #acceptDrops(): void {
    document.addEventListener("dragover", (event) => {
      event.preventDefault();
      this.element.classList.add("dropping");
    });
    document.addEventListener("dragleave", () => this.element.classList.remove("dropping"));
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      this.element.classList.remove("dropping");
      void this.#takeFiles([...(event.dataTransfer?.files ?? [])]);
    });
  }
}

function explained(error: unknown): string {
  if (!(error instanceof MicrophoneError)) return strings.microphone.other((error as Error).message);
  const { problem, message } = error;
  return problem === "other" ? strings.microphone.other(message) : strings.microphone[problem];
}
