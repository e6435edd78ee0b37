/**
 * Linear memory: slots are reserved while loading, then the arena is sealed and never grows (growing detaches every view).
 * A slot for voice data, or data derived from it, is reserved as such for one part of the engine: `wipe` clears all slots of a part.
 */

/** Parts, as bits: one part can be wiped while another is working. */
export const ANALYSIS: i32 = 1;
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
  const end = (<u64>top + <u64>bytes + 63) & ~63;
  const missing = <i32>((end + 0xffff) >> 16) - memory.size();
  // A host may go on after this trap, so nothing has changed by then: a gallery that cannot grow is full.
  if (end > u32.MAX_VALUE || (missing > 0 && memory.grow(missing) < 0)) unreachable();
  top = <usize>end;
  return slot;
}

/** A slot that `wipe(part)` clears. */
export function reserveVoice(bytes: usize, part: i32): usize {
  const slot = reserve(bytes);
  holdsVoice(slot, bytes, part);
  return slot;
}

/** For memory that was not reserved: several `parts` may use it. */
export function holdsVoice(at: usize, bytes: usize, parts: i32): void {
  if (voices == MOST_VOICE_SLOTS) unreachable();
  const slot = slotOf(voices++);
  slot.at = at;
  slot.bytes = bytes;
  slot.parts = parts;
}

/** Clears all voice data of a part of the engine. */
export function wipe(part: i32): void {
  for (let i = 0; i < voices; i++) {
    const slot = slotOf(i);
    if (slot.parts & part) memory.fill(slot.at, 0, slot.bytes);
  }
}

/** A zeroed record in its own slot. */
// @ts-ignore: decorator
@inline
export function create<T>(): T {
  return changetype<T>(reserve(offsetof<T>()));
}

export function seal(): void {
  sealed = true;
}
