import { expect, it, vi } from "vitest";
import { Announcements } from "../../src/telephony/announcements.js";

it("an announcement can be used once, and is forgotten in time even if an older one was announced again", () => {
  let now = 0;
  const announcements = new Announcements<string>(60, () => now);
  announcements.add("first", "Ada");
  announcements.add("second", "Bea");
  now = 50;
  announcements.add("first", "Cleo");
  now = 70;
  expect(announcements.take("second")).toBeNull();
  expect(announcements.take("first")).toBe("Cleo");
  expect(announcements.take("first")).toBeNull();
});

it("an announcement outlasts a change of the system's clock", () => {
  const announcements = new Announcements<string>(60);
  announcements.add("call", "Ada");
  const now = Date.now();
  const clock = vi.spyOn(Date, "now").mockImplementation(() => now + 3_600_000);
  expect(announcements.take("call")).toBe("Ada");
  clock.mockRestore();
});
