import * as Plot from "@observablehq/plot";

/** A plot as one picture with one name: what is inside is for the eye, and the figures beside it say the same. */
export function picture(options: Plot.PlotOptions & { readonly ariaLabel: string }): Element {
  const plot = Plot.plot(options);
  plot.setAttribute("role", "img");
  for (const part of plot.querySelectorAll("[aria-label]")) part.removeAttribute("aria-label");
  return plot;
}
