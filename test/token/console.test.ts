import { expect, test, vi } from "vitest";
import { createBox } from "./box.js";

test("the sign-in library writes nothing to the log", async () => {
  const said = (["log", "info", "warn", "error"] as const).map((name) => vi.spyOn(console, name));
  const box = createBox();
  expect((await box.fetch("/oauth2/authorize?client_id=nobody")).status).toBe(400);
  for (const spy of said) expect(spy).not.toHaveBeenCalled();
  const warned = said[2]!.mockImplementation(() => {});
  console.warn("what else is said is let through");
  expect(warned).toHaveBeenCalledOnce();
  for (const spy of said) spy.mockRestore();
});
