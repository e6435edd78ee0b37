import { expect, test, vi } from "vitest";
import { createBox } from "./box.js";
import { Browser } from "./form-browser.js";

test("on a Node that is too old for the sign-in library, the page says so, and sign-ins work after an update", async () => {
  const box = createBox({ startAt: Date.now() });
  const user = await box.service.users.create({ name: "olga", role: "owner", password: "correct horse battery" });
  const redirectUris = ["https://app.example/cb"];
  const { credential } = await box.service.credentials.create(user, { kind: "user", label: "Console", redirectUris });
  const query = { client_id: credential.clientId, redirect_uri: redirectUris[0]!, response_type: "code" };
  const browser = new Browser(box);
  await browser.submit((await browser.go("/sign-in")).text, { name: "olga", password: "correct horse battery" });
  const cookie = `vivavoce_session=${browser.cookies.get("vivavoce_session")!.value}`;
  const begin = () =>
    box.fetch(
      `/oauth2/authorize?${new URLSearchParams({
        ...query,
        scope: "platform-api",
        code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        code_challenge_method: "S256",
      })}`,
      { headers: { Cookie: cookie } },
    );
  const parse = Object.getOwnPropertyDescriptor(URL, "parse")!;
  Reflect.deleteProperty(URL, "parse");
  const refused = await begin();
  Object.defineProperty(URL, "parse", parse);
  expect([refused.status, await refused.text()]).toEqual([
    501,
    expect.stringContaining("sign-in needs a newer Node.js"),
  ]);

  // While the library is loaded, only its own warning about Node is dropped; it writes nothing else.
  const [said, warned] = [
    (["log", "info", "error"] as const).map((name) => vi.spyOn(console, name)),
    vi.spyOn(console, "warn").mockImplementation(() => {}),
  ];
  const usual = console.warn;
  const begun = begin();
  while (console.warn === usual) await new Promise((resolve) => setImmediate(resolve));
  console.warn("said by somebody else", 7);
  expect((await begun).status).toBe(303);
  expect(console.warn).toBe(usual);
  expect(warned.mock.calls).toEqual([["said by somebody else", 7]]);
  for (const spy of said) expect(spy).not.toHaveBeenCalled();
  for (const spy of [...said, warned]) spy.mockRestore();
});
