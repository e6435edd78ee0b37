import { expect, test, vi } from "vitest";
import { endFirstRun, firstOwner, firstRun } from "../../src/server/first-run.js";
import { createBox } from "../token/box.js";

const tokenFor = ({ service }: ReturnType<typeof createBox>, { clientId, clientSecret }: Record<string, string>) =>
  service
    .clientCredentials({ client: { clientId: clientId!, secret: clientSecret! }, scope: "bio", address: "127.0.0.1" })
    .then(
      () => true,
      () => false,
    );

test("the start after a killed first start creates new secrets, because nobody saw the old ones", async () => {
  const box = createBox();
  const { service } = box;
  const { documents } = service;
  const lost = (await firstRun(service, documents))!;
  await firstOwner(service, documents);
  // Another replica that starts at this moment waits for the first one.
  expect(await firstRun(service, documents, 60_000)).toBeNull();
  const again = (await firstRun(service, documents))!;
  const owner = (await firstOwner(service, documents))!;
  expect(await tokenFor(box, { ...lost })).toBe(false);
  expect(await tokenFor(box, { ...again })).toBe(true);
  expect(await service.users.authenticate(owner.name, owner.password)).not.toBeNull();
  expect(await service.applications.list()).toHaveLength(1);
  await endFirstRun(documents);
  expect(await firstRun(service, documents)).toBeNull();
  expect(await firstOwner(service, documents)).toBeNull();
});

test("a box that first ran without tokens gets its application when they are switched on", async () => {
  const box = createBox();
  const { service } = box;
  const { documents } = service;
  expect(await firstOwner(service, documents)).not.toBeNull();
  await endFirstRun(documents);
  const application = (await firstRun(service, documents))!;
  expect(await tokenFor(box, { ...application })).toBe(true);
  expect(await firstOwner(service, documents)).toBeNull();
});

test("a store that was used before gets no application and no owner", async () => {
  const { service } = createBox();
  await service.applications.create({ name: "Bank", environment: "production", geography: "eu", gkScopes: ["bank"] });
  await service.users.create({ name: "olga", role: "owner", password: "correct horse battery" });
  expect(await firstRun(service, service.documents)).toBeNull();
  expect(await firstOwner(service, service.documents)).toBeNull();
  expect(await service.applications.list()).toHaveLength(1);
  expect(await service.users.list()).toHaveLength(1);
});

test("a replica takes over a first start that did not end in a minute, and not before", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: 1_000_000 });
  try {
    const { service } = createBox();
    const { documents } = service;
    const begun = (await firstRun(service, documents, 60_000))!;
    expect(begun).toMatchObject({ scope: "default", clientSecret: expect.any(String) });
    vi.setSystemTime(1_059_999);
    expect(await firstRun(service, documents, 60_000)).toBeNull();
    vi.setSystemTime(1_060_000);
    expect((await firstRun(service, documents, 60_000))!.clientSecret).not.toBe(begun.clientSecret);
    // Now that one has a minute.
    vi.setSystemTime(1_119_999);
    expect(await firstRun(service, documents, 60_000)).toBeNull();
    // A clock that was set back keeps nobody waiting.
    vi.setSystemTime(1000);
    expect(await firstRun(service, documents, 60_000)).not.toBeNull();
    await endFirstRun(documents);
    vi.setSystemTime(9_000_000);
    expect(await firstRun(service, documents, 60_000)).toBeNull();
  } finally {
    vi.useRealTimers();
  }
});
