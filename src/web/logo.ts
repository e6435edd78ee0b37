import { svg } from "./dom.js";

export function logo(): SVGSVGElement {
  const bars = [6, 13, 20, 12, 7].map((height, i) =>
    svg("rect", { x: 3 + 5 * i, y: 14 - height / 2, width: 2.6, height, rx: 1.3 }),
  );
  return svg("svg", { viewBox: "0 0 28 28", class: "logo", "aria-hidden": "true" }, ...bars);
}
