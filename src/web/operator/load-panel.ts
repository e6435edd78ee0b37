/** Load of the box: figures of the last minute, and plots of the last hour. */
import * as Plot from "@observablehq/plot";
import type { LoadSpan, LoadView, Spread } from "../../server/operator/view.js";
import { element } from "../dom.js";
import { latency, thousandths } from "./figures.js";
import { drawPlot } from "./plot.js";
import { strings } from "./strings.js";
import { card } from "./table-panel.js";

const hourMs = 3_600_000;
/** The time axis has at least this length. It is shorter than an hour, so that the plots of a newly started box are not mostly empty. */
const shortestMs = 600_000;
const clock = (at: Date) => at.toLocaleTimeString(strings.locale, { hour: "2-digit", minute: "2-digit" });
const words = strings.load;

/** Full minutes, as many as fit. */
function ticks(from: number, to: number): Date[] {
  const stepMs = 60_000 * ([1, 2, 5, 10, 15].find((minutes) => (to - from) / 60_000 / minutes <= 5) ?? 15);
  const first = Math.ceil(from / stepMs) * stepMs;
  return Array.from({ length: Math.floor((to - first) / stepMs) + 1 }, (_, i) => new Date(first + i * stepMs));
}

interface Line {
  readonly label: string;
  /** A CSS class that sets color and dashes. */
  readonly kind: "first" | "second";
  readonly value: (span: LoadSpan) => number | null;
}

const color = { first: "var(--accent)", second: "var(--second)" };

/** One plot over the last hour. */
class History {
  readonly #place = element("div", { class: "plot" });
  readonly element: HTMLElement;

  constructor(
    readonly name: string,
    readonly lines: readonly Line[],
    readonly write: (value: number) => string,
    /** The axis ends at this value or above. */
    readonly least: number,
  ) {
    const keys = lines.map(({ label, kind }) => element("span", { class: `key ${kind}` }, label));
    this.element = element("figure", {}, element("figcaption", {}, element("strong", {}, name), ...keys), this.#place);
  }

  show(spans: readonly LoadSpan[], now: number): void {
    const width = Math.max(240, this.#place.clientWidth || 320);
    const latest = this.lines.map(({ label, value }) => {
      const last = spans.map(value).findLast((one) => one !== null);
      return `${label} ${last === undefined ? words.nothing : this.write(last!)}`;
    });
    const from = Math.max(now - hourMs, Math.min(spans[0]?.at ?? now, now - shortestMs));
    const highest = Math.max(this.least, ...spans.flatMap((span) => this.lines.map(({ value }) => value(span) ?? 0)));
    const plot = drawPlot({
      width,
      height: 170,
      marginLeft: 44,
      marginRight: 12,
      ariaLabel: words.summary(this.name, latest.join(", ")),
      x: {
        type: "time",
        domain: [new Date(from), new Date(now)],
        label: null,
        ticks: ticks(from, now),
        tickFormat: clock,
      },
      y: { label: null, grid: true, ticks: 4, domain: [0, highest], nice: true },
      marks: this.lines.flatMap(({ kind, value }) => {
        const points = spans.map((span) => ({ at: new Date(span.at), value: value(span) ?? Number.NaN }));
        const style = {
          x: "at",
          y: "value",
          stroke: color[kind],
          ...(kind === "second" ? { strokeDasharray: "4 3" } : {}),
        };
        // A single value between gaps cannot be drawn as a line, so dots are drawn too.
        return [
          Plot.lineY(points, { ...style, strokeWidth: 1.6 }),
          Plot.dot(points, { x: "at", y: "value", r: 1.6, fill: color[kind] }),
        ];
      }),
    });
    this.#place.replaceChildren(plot);
  }
}

class Figure {
  readonly #value = element("dd", {}, strings.none);
  readonly element: HTMLElement;
  constructor(name: string) {
    this.element = element("div", { class: "figure" }, element("dt", {}, name), this.#value);
  }
  set value(text: string) {
    if (this.#value.textContent !== text) this.#value.textContent = text;
  }
}

const spreadLines = (pick: (span: LoadSpan) => Spread | null, times: number): Line[] => [
  { label: words.median, kind: "first", value: (span) => scaled(pick(span)?.median, times) },
  { label: words.p95, kind: "second", value: (span) => scaled(pick(span)?.p95, times) },
];
const scaled = (value: number | undefined, times: number) => (value === undefined ? null : value * times);

export class LoadPanel {
  readonly #waiting = new Figure(words.waiting);
  readonly #running = new Figure(words.running);
  readonly #calls = new Figure(words.calls);
  readonly #latency = new Figure(words.latency);
  readonly #factor = new Figure(words.factor);
  readonly #histories = [
    new History(
      words.queuePlot,
      [
        { label: words.running, kind: "first", value: ({ running }) => running },
        { label: words.waiting, kind: "second", value: ({ waiting }) => waiting },
      ],
      String,
      4,
    ),
    new History(
      words.latencyPlot,
      spreadLines(({ latency }) => latency, 1000),
      (ms) => latency(ms / 1000),
      10,
    ),
    new History(
      words.factor,
      spreadLines(({ realTimeFactor }) => realTimeFactor, 1),
      thousandths,
      0.02,
    ),
  ];
  readonly element: HTMLElement;
  #spans: LoadSpan[] = [];

  constructor() {
    const figures = [this.#waiting, this.#running, this.#calls, this.#latency, this.#factor];
    this.element = card(
      words.heading,
      words.note,
      element("dl", { class: "figures" }, ...figures.map((figure) => figure.element)),
      element("div", { class: "plots" }, ...this.#histories.map((history) => history.element)),
    );
  }

  /** The time from which to request spans; the newest known one is requested again, because it may have grown. */
  get since(): number {
    return this.#spans.at(-1)?.at ?? 0;
  }

  show(view: LoadView): void {
    const kept = this.#spans.filter(({ at }) => at < this.since && at > view.now - hourMs);
    this.#spans = [...kept, ...view.spans];
    const minute = this.#spans.filter(({ at }) => at > view.now - 60_000 - view.spanMs);
    this.#waiting.value = words.of(view.waiting, view.capacity);
    this.#running.value = words.of(view.running, view.concurrent);
    this.#calls.value = String(minute.reduce((sum, { calls }) => sum + calls, 0));
    const latest = <T>(pick: (span: LoadSpan) => T | null) => minute.map(pick).findLast((one) => one !== null) ?? null;
    const delay = latest((span) => span.latency);
    const factor = latest((span) => span.realTimeFactor);
    this.#latency.value = delay ? latency(delay.median) : strings.none;
    this.#factor.value = factor ? thousandths(factor.median) : strings.none;
    for (const history of this.#histories) history.show(this.#spans, view.now);
  }
}
