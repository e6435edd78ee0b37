/**
 * Linear memory: slots are reserved while loading, then the arena is sealed and never grows (growing detaches every view).
 * A slot that holds voice, or anything made of it, is reserved as such, with the part of the engine that works in it: `wipe` clears all of a part.
 */

/** Parts, as bits: while one wipes what it left, the work of another may go on. */
export const HEARING: i32 = 1;
export const SPEAKER: i32 = 2;
export const ATTACKS: i32 = 4;
export const SCORING: i32 = 8;
export const GALLERY: i32 = 16;

let top: usize = (__heap_base + 63) & ~63;
let sealed: bool = false;

@unmanaged
class VoiceSlot {
  at: usize;
  bytes: usize;
  parts: i32;
}

const MOST_VOICE_SLOTS = 128;
const voiceSlots: usize = memory.data(MOST_VOICE_SLOTS * 12);
let voices: i32 = 0;

// @ts-ignore: decorator
@inline
function slotOf(i: i32): VoiceSlot {
  return changetype<VoiceSlot>(voiceSlots + <usize>i * offsetof<VoiceSlot>());
}

/** A zeroed slot of at least `bytes`, 64-byte aligned. Traps after `seal`: forward passes do not allocate. */
export function reserve(bytes: usize): usize {
  if (sealed) unreachable();
  const slot = top;
  top = (top + bytes + 63) & ~63;
  const missing = <i32>((top + 0xffff) >> 16) - memory.size();
  if (missing > 0 && memory.grow(missing) < 0) unreachable();
  return slot;
}

/** A slot that `wipe(part)` clears. */
export function reserveVoice(bytes: usize, part: i32): usize {
  const slot = reserve(bytes);
  holdsVoice(slot, bytes, part);
  return slot;
}

/** For memory that was not reserved: several `parts` may work in it. */
export function holdsVoice(at: usize, bytes: usize, parts: i32): void {
  if (voices == MOST_VOICE_SLOTS) unreachable();
  const slot = slotOf(voices++);
  slot.at = at;
  slot.bytes = bytes;
  slot.parts = parts;
}

/** No voice stays behind in a part of the engine. */
export function wipe(part: i32): void {
  for (let i = 0; i < voices; i++) {
    const slot = slotOf(i);
    if (slot.parts & part) memory.fill(slot.at, 0, slot.bytes);
  }
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
