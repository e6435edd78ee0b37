import { expect, test } from "vitest";
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
