import { expect, it } from "vitest";
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
