import * as Plot from "@observablehq/plot";

/** A plot as one image with one label for screen readers; the numbers next to it give the same information. */
export function drawPlot(options: Plot.PlotOptions & { readonly ariaLabel: string }): Element {
  const plot = Plot.plot(options);
  plot.setAttribute("role", "img");
  for (const part of plot.querySelectorAll("[aria-label]")) part.removeAttribute("aria-label");
  return plot;
}
