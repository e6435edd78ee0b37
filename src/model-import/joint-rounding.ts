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

/** V, upper triangular, with V · Vᵀ = the symmetric matrix whose upper half is given; computed in place. */
function upperFactor(v: Float64Array, n: number): Float64Array {
  const column = new Float64Array(n);
  for (let j = n - 1; j >= 0; j--) {
    const pivot = Math.sqrt(v[j * n + j]!);
    v[j * n + j] = pivot;
    for (let i = 0; i < j; i++) column[i] = v[i * n + j]! / pivot;
    for (let i = 0; i < j; i++) {
      const factor = column[i]!;
      v[i * n + j] = factor;
      for (let k = i; k < j; k++) v[i * n + k]! -= factor * column[k]!;
    }
  }
  return v;
}

/** The inverse of an upper triangular matrix. */
function inverseOf(v: Float64Array, n: number): Float64Array {
  const u = new Float64Array(n * n);
  for (let i = n - 1; i >= 0; i--) {
    const pivot = 1 / v[i * n + i]!;
    u[i * n + i] = pivot;
    for (let k = i + 1; k < n; k++) {
      const factor = -v[i * n + k]! * pivot;
      for (let j = k; j < n; j++) u[i * n + j]! += factor * u[k * n + j]!;
    }
  }
  return u;
}
