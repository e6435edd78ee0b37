// node --import clock-shift.mjs …: the clock of the whole process, its workers and its embedded database is shifted by CLOCK_SHIFT_DAYS.
const shiftMs = Number(process.env.CLOCK_SHIFT_DAYS) * 86_400_000;
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...given) {
    if (given.length === 0) super(RealDate.now() + shiftMs);
    else super(...given);
  }
  static now() {
    return RealDate.now() + shiftMs;
  }
};
