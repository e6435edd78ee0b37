/** Numbers formatted for the view's language. */
import { numbers } from "../words/numbers.js";
import { strings } from "./strings.js";

const { decimal, whole, fixed } = numbers(strings.locale);
const [hundredths, thousandths] = [fixed(2), fixed(3)];
const twoDigits = new Intl.NumberFormat(strings.locale, { minimumSignificantDigits: 2, maximumSignificantDigits: 2 });

export { decimal, thousandths, whole };
export const seconds = (value: number): string => `${decimal(value)} s`;
export const latency = (value: number): string => (value < 1 ? `${whole(1000 * value)} ms` : `${hundredths(value)} s`);
export const decibels = (value: number): string => `${whole(value)} dB`;
export const risk = (value: number): string => strings.load.of(Math.round(value), 1000);
export const reliability = (value: number): string => strings.load.of(Math.round(value), 100);
export const hertz = (value: number): string => `${whole(value)} Hz`;
export const percent = (rate: number): string => `${hundredths(100 * rate)} %`;
/** Two significant digits. */
export const roughPercent = (rate: number): string => `${twoDigits.format(100 * rate)} %`;
