// node --import clock-speed.mjs …: the clock of the whole process, its workers and its embedded database runs CLOCK_SPEED times as fast. So do timers
// of five minutes and more, which a box uses for periodic work; timers that limit a call do not. `globalThis.jumpClock(days)` sets the clock forward.
const speed = Number(process.env.CLOCK_SPEED);
const LONG_MS = 300_000;
const RealDate = Date;
const startedAt = RealDate.now();
let aheadMs = 0;
globalThis.jumpClock = (days) => {
  aheadMs += days * 86_400_000;
};
globalThis.Date = class extends RealDate {
  constructor(...given) {
    if (given.length === 0) super(globalThis.Date.now());
    else super(...given);
  }
  static now() {
    return Math.floor(startedAt + aheadMs + (RealDate.now() - startedAt) * speed);
  }
};
const { setInterval: realInterval } = globalThis;
globalThis.setInterval = (work, ms, ...given) => realInterval(work, ms >= LONG_MS ? ms / speed : ms, ...given);
