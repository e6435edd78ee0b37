/** Linear memory: slots are reserved while loading, then the arena is sealed and never grows (growing detaches every view). */

let top: usize = (__heap_base + 63) & ~63;
let sealed: bool = false;

/** A zeroed slot of at least `bytes`, 64-byte aligned. Traps after `seal`: forward passes do not allocate. */
export function reserve(bytes: usize): usize {
  if (sealed) unreachable();
  const slot = top;
  top = (top + bytes + 63) & ~63;
  const missing = <i32>((top + 0xffff) >> 16) - memory.size();
  if (missing > 0 && memory.grow(missing) < 0) unreachable();
  return slot;
}

/** A zeroed record in a slot of its own. */
// @ts-ignore: decorator
@inline
export function create<T>(): T {
  return changetype<T>(reserve(offsetof<T>()));
}

export function seal(): void {
  sealed = true;
}
