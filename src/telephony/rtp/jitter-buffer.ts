/** Reorders packets that arrive out of order and reports lost ones. */
import type { RtpPacket } from "./packet.js";

export type Ordered =
  | { readonly kind: "packet"; readonly packet: RtpPacket }
  /** Packets that did not arrive in time, and the number of samples lost with them. */
  | { readonly kind: "gap"; readonly packets: number; readonly samples: number }
  /** Nothing is missing, but time has passed: the sender is silent. */
  | { readonly kind: "pause"; readonly samples: number };

/** A packet further ahead, or further behind, is not lost or late: if another one follows it, its sender has restarted (RFC 3550 §A.1). */
const LONGEST_GAP = 1000;
const MOST_LATE = 100;

export class JitterBuffer {
  readonly #waiting = new Map<number, RtpPacket>();
  /** The next sequence number. */
  #due: number | null = null;
  /** The last packet that was too far away. */
  #stray: RtpPacket | null = null;
  /** The time up to which audio has been passed on. */
  #dueTimestamp = 0;
  /** Samples of the last packet with audio. */
  #packetSamples = 0;

  constructor(
    /** How many later packets to wait for before a packet counts as lost: 60 ms of 20 ms packets. */
    private readonly patience: number,
    private readonly samplesOf: (packet: RtpPacket) => number,
  ) {}

  push(packet: RtpPacket): Ordered[] {
    if (this.#due === null) this.#begin(packet);
    const ahead = distance(this.#due!, packet.sequence);
    if (ahead > LONGEST_GAP || ahead < -MOST_LATE) {
      const first = this.#stray;
      this.#stray = packet;
      if (!first || distance(first.sequence, packet.sequence) !== 1) return [];
      // Waiting packets belong to the old stream.
      const before = this.flush();
      this.#begin(first);
      return [...before, ...this.push(first), ...this.push(packet)];
    }
    if (ahead < 0 || this.#waiting.has(packet.sequence)) return [];
    this.#waiting.set(packet.sequence, packet);
    const ordered = this.#inOrder();
    while (this.#waiting.size > this.patience) ordered.push(...this.#skip());
    return ordered;
  }

  /** Releases everything that waits, whatever is missing. */
  flush(): Ordered[] {
    const ordered: Ordered[] = [];
    while (this.#waiting.size > 0) ordered.push(...this.#skip());
    return ordered;
  }

  #begin(packet: RtpPacket): void {
    this.#due = packet.sequence;
    this.#dueTimestamp = packet.timestamp;
  }

  #inOrder(): Ordered[] {
    const ordered: Ordered[] = [];
    for (let packet = this.#waiting.get(this.#due!); packet; packet = this.#waiting.get(this.#due!)) {
      this.#waiting.delete(packet.sequence);
      const silent = this.#passed(packet);
      if (silent > 0) ordered.push({ kind: "pause", samples: silent });
      ordered.push({ kind: "packet", packet });
      this.#due = (packet.sequence + 1) & 0xffff;
      const samples = this.samplesOf(packet);
      // Packets of a key repeat the time at which it was pressed, even after later audio. They must not set the time back.
      if (samples > 0 || silent > 0) this.#dueTimestamp = (packet.timestamp + samples) >>> 0;
      if (samples > 0) this.#packetSamples = samples;
    }
    return ordered;
  }

  /** Gives up on the next packet and continues with the ones that have arrived. */
  #skip(): Ordered[] {
    let nearest: RtpPacket | null = null;
    for (const packet of this.#waiting.values())
      if (!nearest || distance(this.#due!, packet.sequence) < distance(this.#due!, nearest.sequence)) nearest = packet;
    const packets = distance(this.#due!, nearest!.sequence);
    // The time may have moved further: a sender that pauses, or restarts its clock, has not lost what it never sent.
    const samples = Math.min(this.#passed(nearest!), packets * this.#packetSamples);
    this.#due = nearest!.sequence;
    this.#dueTimestamp = (this.#dueTimestamp + samples) >>> 0;
    return [{ kind: "gap", packets, samples }, ...this.#inOrder()];
  }

  /** Samples between the audio so far and the packet; 0 if the packet is from an earlier time. */
  #passed({ timestamp }: RtpPacket): number {
    const samples = (timestamp - this.#dueTimestamp) >>> 0;
    return samples < 0x7fffffff ? samples : 0;
  }
}

/** The distance from `from` to `to` in 16-bit numbers that wrap around. */
const distance = (from: number, to: number): number => (((to - from + 0x8000) & 0xffff) >>> 0) - 0x8000;
