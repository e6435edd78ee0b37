import type { Estimate } from "./summary.js";

export function rate(value: number): string {
  return `${(100 * value).toFixed(2)} %`;
}

export function percent({ value, interval }: Estimate): string {
  const range = interval ? ` (${(100 * interval.low).toFixed(2)} to ${(100 * interval.high).toFixed(2)})` : "";
  return `${rate(value)}${range}`;
}

export function decimal({ value, interval }: Estimate): string {
  return `${value.toFixed(3)}${interval ? ` (${interval.low.toFixed(3)} to ${interval.high.toFixed(3)})` : ""}`;
}
