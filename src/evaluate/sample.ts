/** `most` of the numbers below `count`, in ascending order: each set of them is equally likely (Floyd's algorithm). All, if there are no more. */
export function sampleOf(count: number, most: number, random: () => number): Float64Array {
  if (count <= most) return Float64Array.from({ length: count }, (_, i) => i);
  // Two draws: one has 32 bits, and there may be more trials than that.
  const below = (limit: number) => Math.floor((random() + random() / 2 ** 32) * limit);
  const chosen = new Set<number>();
  for (let last = count - most; last < count; last++) {
    const drawn = below(last + 1);
    chosen.add(chosen.has(drawn) ? last : drawn);
  }
  return Float64Array.from(chosen).sort();
}
