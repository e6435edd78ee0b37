/**
 * Rounds weights so that outputs on speech change least (Frantar et al. 2022): the rounding error of each input's weight is compensated by the
 * weights of inputs not rounded yet, in proportion to how these inputs correlate in the given speech.
 */

/** Added to every input's moment, as a share of their mean: a dozen windows do not show all correlations. */
const damping = 0.01;
const least = 1e-12;

export class JointRounding {
  /** Inputs in the order in which they are rounded: the loudest first. */
  readonly #order: Int32Array;
  /** Upper triangle [inputs][inputs], in that order: how much of an error at i goes to each later input. */
  readonly #shares: Float64Array;

  /** `moment`: second moments of the inputs; only the lower half is read. */
  constructor(
    readonly inputs: number,
    moment: Float64Array,
  ) {
    const n = inputs;
    const power = (i: number) => moment[i * n + i]!;
    this.#order = Int32Array.from({ length: n }, (_, i) => i).sort((a, b) => power(b) - power(a));
    const mean = this.#order.reduce((sum, i) => sum + power(i), 0) / n;
    const turned = new Float64Array(n * n);
    for (let i = 0; i < n; i++)
      for (let j = i; j < n; j++) {
        const [a, b] = [this.#order[i]!, this.#order[j]!];
        turned[i * n + j] = moment[Math.max(a, b) * n + Math.min(a, b)]! + (i === j ? mean * damping + least : 0);
      }
    this.#shares = inverseOf(upperFactor(turned, n), n);
    for (let i = 0; i < n; i++) for (let j = n - 1; j >= i; j--) this.#shares[i * n + j]! /= this.#shares[i * n + i]!;
  }

  /** The row as integers from -most to most. */
  round(row: Float64Array, most: number): Float64Array {
    const n = this.inputs;
    const left = Float64Array.from(this.#order, (i) => row[i]!);
    const rounded = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      const whole = Math.max(-most, Math.min(most, Math.round(left[i]!)));
      rounded[this.#order[i]!] = whole;
      const error = left[i]! - whole;
      for (let j = i + 1, at = i * n + j; j < n; j++, at++) left[j]! -= error * this.#shares[at]!;
    }
    return rounded;
  }
}

/** V, upper triangular, with V · Vᵀ = the symmetric matrix whose upper half is given; computed in place, four columns at a time from the last. */
function upperFactor(v: Float64Array, n: number): Float64Array {
  const columns = Array.from({ length: 4 }, () => new Float64Array(n));
  for (let end = n; end > 0; end -= 4) {
    const first = Math.max(0, end - 4);
    for (const column of columns) column.fill(0);
    for (let j = end - 1; j >= first; j--) {
      const done = columns.slice(0, end - 1 - j);
      const column = columns[end - 1 - j]!;
      for (let i = 0; i <= j; i++) column[i] = done.reduce((x, each) => x - each[i]! * each[j]!, v[i * n + j]!);
      const pivot = Math.sqrt(column[j]!);
      for (let i = 0; i <= j; i++) v[i * n + j] = column[i]! /= pivot;
    }
    const [c0, c1, c2, c3] = columns as [Float64Array, Float64Array, Float64Array, Float64Array];
    for (let i = 0; i < first; i++) {
      const [f0, f1, f2, f3] = [c0[i]!, c1[i]!, c2[i]!, c3[i]!];
      for (let k = i, at = i * n + i; k < first; k++, at++)
        v[at]! -= f0 * c0[k]! + f1 * c1[k]! + f2 * c2[k]! + f3 * c3[k]!;
    }
  }
  return v;
}

/** The inverse of an upper triangular matrix, of which four rows at a time go into a new one. */
function inverseOf(v: Float64Array, n: number): Float64Array {
  const u = new Float64Array(n * n);
  for (let i = n - 1; i >= 0; i--) {
    const pivot = 1 / v[i * n + i]!;
    u[i * n + i] = pivot;
    const factor = (k: number) => (k < n ? -v[i * n + k]! * pivot : 0);
    const row = (k: number) => Math.min(k, n - 1) * n;
    for (let k = i + 1; k < n; k += 4) {
      const [f0, f1, f2, f3] = [factor(k), factor(k + 1), factor(k + 2), factor(k + 3)];
      const [r0, r1, r2, r3] = [row(k), row(k + 1), row(k + 2), row(k + 3)];
      for (let j = k, at = i * n + k; j < n; j++, at++)
        u[at]! += f0 * u[r0 + j]! + f1 * u[r1 + j]! + f2 * u[r2 + j]! + f3 * u[r3 + j]!;
    }
  }
  return u;
}
