/**
 * Calls `onQuiet`, again and again, while nothing has been heard for longer than `seconds`. It counts its own ticks and not
 * the time: a box that stood still, as a virtual machine does while it is moved, has not read yet what came in the
 * meantime.
 */
export function watchQuiet(tickMs: number, seconds: () => number, onQuiet: () => void) {
  let ticks = 0;
  const timer = setInterval(() => {
    if (++ticks * tickMs > seconds() * 1000) onQuiet();
  }, tickMs);
  return {
    heard(): void {
      ticks = 0;
    },
    stop: () => clearInterval(timer),
  };
}
