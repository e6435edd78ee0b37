/** A duration of the contract in seconds; 0 if it is absent. */
export const secondsOf = (duration: { readonly seconds: bigint; readonly nanos: number } | undefined): number =>
  duration ? Number(duration.seconds) + duration.nanos / 1e9 : 0;
