/** kill -9 during enrollments: nothing that was acknowledged is lost, nothing is incomplete. */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openEmbeddedStore } from "../../src/postgres.js";
import { startEnrolling } from "./child-process.js";
import { withEmptyDatabase } from "./empty-database.js";
import { engagementOf, sessionOf } from "./fixtures.js";

const ENROLLMENTS = 400;
const KILLS = 20;
/** In parallel, each in its own folder, because starting takes longer than enrolling. */
const LANES = 2;

interface Stock {
  readonly count: number;
  /** By number; persons that an earlier stock reported are left out until the end. */
  readonly found: Record<string, Found>;
}

interface Found {
  readonly segments: number;
  readonly trained: boolean;
  readonly printVersion: number;
  readonly generation: number;
  readonly whole: boolean;
}

let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "vivavoce-crash-"));
  const store = await openEmbeddedStore(await withEmptyDatabase(join(folder, "new")));
  const engagement = engagementOf("scope");
  await store.engagements.create(engagement);
  await store.sessions.create(sessionOf("scope", engagement.id, { id: "session" }));
  await store.close();
}, 300_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }), 300_000);

test("survives kill -9 at twenty moments of four hundred enrollments", { timeout: 600_000 }, async () => {
  const lanes = Array.from({ length: LANES }, (_, lane) => enrollAndKill(join(folder, `lane-${lane}`)));
  const kills = (await Promise.all(lanes)).reduce((sum, each) => sum + each, 0);
  expect(kills).toBe(KILLS);
});

/** Returns how many processes it killed. */
async function enrollAndKill(store: string): Promise<number> {
  cpSync(join(folder, "new"), store, { recursive: true });
  const perLane = ENROLLMENTS / LANES;
  const killsPerLane = KILLS / LANES;
  const acknowledged = new Set<number>();
  let kills = 0;
  let finished = false;
  let seen = 1;
  while (!finished) {
    const first = acknowledged.size + 1;
    const child = startEnrolling("folder", store, seen, first, perLane);
    // Spread over the remaining work, but not so late that a fast process finishes first; a few are killed while they open the store.
    const left = perLane - acknowledged.size;
    const share = Math.ceil(left / (killsPerLane - kills + 1));
    const dying = kills < killsPerLane;
    const dieAfter = Math.min(Math.floor(Math.random() * 2 * share), left - 10);
    const kill = () => child.process.kill("SIGKILL");
    if (dying && kills % 8 === 7) setTimeout(kill, Math.random() * 1_000);
    let acknowledgedHere = 0;
    for await (const message of child.messages) {
      if (message.stock) {
        check(message.stock as Stock, seen, acknowledged);
        seen = first;
      }
      if (typeof message.enrolled === "number") {
        acknowledged.add(message.enrolled);
        acknowledgedHere++;
      }
      if (message.finished) finished = true;
      // At some point during the next enrollment.
      if (dying && (message.stock || message.enrolled) && acknowledgedHere >= dieAfter)
        setTimeout(kill, Math.random() * 8);
    }
    const { signal, code, errors } = await child.ended;
    if (signal === "SIGKILL") kills++;
    else expect({ code, errors }).toEqual({ code: 0, errors: "" });
  }
  const last = startEnrolling("folder", store, 1, 1, 0);
  for await (const message of last.messages) if (message.stock) check(message.stock as Stock, 1, acknowledged);
  expect((await last.ended).errors).toBe("");
  expect(acknowledged.size).toBe(perLane);
  return kills;
}

function check({ count, found }: Stock, seen: number, acknowledged: ReadonlySet<number>): void {
  for (const number of acknowledged) {
    if (number < seen) continue;
    expect(found[number], `person ${number} was acknowledged`).toMatchObject({ segments: 1, trained: true });
  }
  for (const [number, { segments, trained, printVersion, generation, whole }] of Object.entries(found)) {
    expect(whole, `person ${number} is complete`).toBe(true);
    // Each state is the result of a complete write: created, enrolled, trained (again, if the reply was lost).
    expect(generation, `person ${number}`).toBe(segments + printVersion);
    expect(trained, `person ${number}`).toBe(printVersion > 0);
    if (trained) expect(segments).toBe(1);
  }
  // None is missing, and there is at most one more: the one in progress.
  expect(count - acknowledged.size).toBeGreaterThanOrEqual(0);
  expect(count - acknowledged.size).toBeLessThanOrEqual(1);
}
