import { describe, expect, it } from "vitest";
import { basic, createBox, createRuntimeClient, form } from "./box.js";

describe("the last owner", () => {
  it("is recognized", async () => {
    const { service } = createBox();
    await service.users.create({ name: "olga", role: "owner", password: "a long password" });
    await service.users.create({ name: "max", role: "member", password: "a long password" });
    const last = { message: expect.stringContaining("the last owner") };
    await expect(service.users.assertAnotherOwner("Olga")).rejects.toMatchObject(last);
    await service.users.assertAnotherOwner("max");
    await service.users.change("max", { role: "owner" });
    await service.users.assertAnotherOwner("olga");
    await service.users.change("max", { disabled: true });
    await expect(service.users.assertAnotherOwner("olga")).rejects.toMatchObject(last);
  });
});

describe("guessing in a client's name", () => {
  const ask = async (box: ReturnType<typeof createBox>, id: string, secret: string, address: string) => {
    const attempt = box.service.clientCredentials({ client: { clientId: id, secret }, scope: "bio", address });
    return attempt.then(
      () => 200,
      (error: { status: number }) => error.status,
    );
  };

  it("from many addresses does not lock out a client at an address it used before", async () => {
    const box = createBox();
    const client = await createRuntimeClient(box);
    expect(await ask(box, client.clientId, client.secret, "10.0.0.1")).toBe(200);
    for (let i = 0; i < 60; i++) await ask(box, client.clientId, "wrong", `10.1.0.${i}`);
    expect(await ask(box, client.clientId, client.secret, "10.9.9.9")).toBe(429);
    expect(await ask(box, client.clientId, client.secret, "10.0.0.1")).toBe(200);
  });

  it("has a bounded delay even if a clock that ran ahead recorded it", async () => {
    const box = createBox();
    const client = await createRuntimeClient(box);
    const year = 365 * 86_400_000;
    box.advance(year);
    for (let i = 0; i < 8; i++) await ask(box, client.clientId, "wrong", "10.0.0.1");
    box.advance(-year);
    const init = form(basic(client.clientId, client.secret), { grant_type: "client_credentials", scope: "bio" });
    const response = await box.fetch("/oauth2/token", init);
    expect(Number(response.headers.get("retry-after") ?? 0)).toBeLessThanOrEqual(15 * 60);
  });
});
