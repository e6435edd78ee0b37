/** The contract of every store: one suite, run on each implementation. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Group, Job, MediaSegment, Print, ProcessedAudio, Store } from "../../src/store/port.js";
import {
  checkOf,
  engagementOf,
  enrollPerson,
  groupOf,
  jobOf,
  mediaOf,
  newId,
  processedOf,
  profileOf,
  segmentOf,
  sessionOf,
  startSession,
  templateOf,
} from "./fixtures.js";

/** Creating an embedded PostgreSQL takes seconds, and many on a busy machine. */
const OPENING_TIMEOUT_MS = 180_000;

export interface StoreUnderTest {
  open(options: { now: () => number }): Promise<Store>;
}

export function describeStoreContract(name: string, { open }: StoreUnderTest): void {
  describe(`${name} fulfills the store's contract`, () => {
    let store: Store;
    let now = 10_000;

    beforeAll(async () => {
      store = await open({ now: () => now });
    }, OPENING_TIMEOUT_MS);
    afterAll(() => store?.close());

    /** Tests share a store but each has its own scope, which also shows that scopes do not see each other. */
    const newScope = () => newId("scope");

    describe("engagements and sessions", () => {
      test("are returned unchanged", async () => {
        const scope = newScope();
        const engagement = engagementOf(scope);
        await store.engagements.create(engagement);
        const session = sessionOf(scope, engagement.id);
        await store.sessions.create(session);
        expect(await store.engagements.get(scope, engagement.id)).toEqual(engagement);
        expect(await store.sessions.get(scope, session.id)).toEqual(session);
      });

      test("stop once", async () => {
        const scope = newScope();
        const session = await startSession(store, scope);
        expect(await store.sessions.stop(scope, session.id, 5_000.5)).toBe(true);
        expect(await store.sessions.stop(scope, session.id, 6_000)).toBe(false);
        expect((await store.sessions.get(scope, session.id))?.stoppedAt).toBe(5_000.5);
        expect(await store.engagements.stop(scope, session.engagementId, 7_000)).toBe(true);
        expect(await store.engagements.stop(scope, session.engagementId, 7_000)).toBe(false);
        expect((await store.engagements.get(scope, session.engagementId))?.stoppedAt).toBe(7_000);
        expect(await store.sessions.stop(scope, "nobody", 1)).toBe(false);
        expect(await store.engagements.stop(scope, "nobody", 1)).toBe(false);
      });

      test("are not found from another scope", async () => {
        const [scope, other] = [newScope(), newScope()];
        const session = await startSession(store, scope);
        expect(await store.sessions.get(other, session.id)).toBeNull();
        expect(await store.engagements.get(other, session.engagementId)).toBeNull();
        expect(await store.sessions.stop(other, session.id, 1)).toBe(false);
        expect(await store.sessions.ofEngagement(other, session.engagementId)).toEqual([]);
      });

      test("are listed by engagement, in the order of their start", async () => {
        const scope = newScope();
        const first = await startSession(store, scope);
        const second = sessionOf(scope, first.engagementId, { id: `a-${newId()}`, startedAt: 1_001 });
        await store.sessions.create(second);
        await startSession(store, scope);
        expect(await store.sessions.ofEngagement(scope, first.engagementId)).toEqual([first, second]);
      });

      test("are listed page by page, the highest id first", async () => {
        const scope = newScope();
        const { engagementId } = await startSession(store, scope, { id: "s-2" });
        for (const id of ["s-4", "s-1", "s-3"]) await store.sessions.create(sessionOf(scope, engagementId, { id }));
        const idsOf = async (before: string | null, limit: number, of = scope) =>
          (await store.sessions.list(of, before, limit)).map(({ id }) => id);
        expect(await idsOf(null, 2)).toEqual(["s-4", "s-3"]);
        expect(await idsOf("s-3", 5)).toEqual(["s-2", "s-1"]);
        expect(await idsOf("s-1", 5)).toEqual([]);
        expect(await idsOf(null, 0)).toEqual([]);
        expect(await idsOf(null, 5, newScope())).toEqual([]);
        await store.sessions.stop(scope, "s-4", 9);
        expect((await store.sessions.list(scope, null, 1))[0]?.stoppedAt).toBe(9);
      });

      test("refuses a duplicate id, and a session of an unknown engagement", async () => {
        const scope = newScope();
        const session = await startSession(store, scope);
        await expect(store.sessions.create(session)).rejects.toMatchObject({ name: "StoreError", code: "exists" });
        const engagement = engagementOf(scope, { id: session.engagementId });
        await expect(store.engagements.create(engagement)).rejects.toMatchObject({ code: "exists" });
        const lost = sessionOf(scope, "no engagement");
        await expect(store.sessions.create(lost)).rejects.toMatchObject({ code: "unknown-parent" });
        const foreign = sessionOf(newScope(), session.engagementId);
        await expect(store.sessions.create(foreign)).rejects.toMatchObject({ code: "unknown-parent" });
      });

      test("keeps checks in order, and shows the newest of a scope first", async () => {
        const scope = newScope();
        const [one, two] = [await startSession(store, scope), await startSession(store, scope)];
        const checks = [
          checkOf(scope, one.id, { at: 30 }),
          checkOf(scope, two.id, { at: 10 }),
          checkOf(scope, one.id, { at: 20, risk: null, profileId: "p" }),
          checkOf(scope, two.id, { at: 20 }),
        ];
        for (const check of checks) await store.sessions.addCheck(check);
        expect(await store.sessions.checks(scope, one.id)).toEqual([checks[0], checks[2]]);
        expect(await store.sessions.recentChecks(scope, 3)).toEqual([checks[0], checks[3], checks[2]]);
        expect(await store.sessions.recentChecks(scope, 0)).toEqual([]);
        expect(await store.sessions.recentChecks(newScope(), 5)).toEqual([]);
        await expect(store.sessions.addCheck(checkOf(scope, "no session"))).rejects.toMatchObject({
          code: "unknown-parent",
        });
      });
    });

    test("a check and its audio model are one write", async () => {
      const scope = newScope();
      const { id: sessionId } = await startSession(store, scope);
      const [check, heard] = [checkOf(scope, sessionId), processedOf(scope, sessionId, 3)];
      await store.sessions.addCheck(check, heard);
      expect(await store.sessions.checks(scope, sessionId)).toEqual([check]);
      expect(await store.processed.get(scope, heard.id)).toEqual(heard);
      // If either id exists, neither is written.
      const [newCheck, newHeard] = [checkOf(scope, sessionId), processedOf(scope, sessionId, 4)];
      await expect(store.sessions.addCheck(check, newHeard)).rejects.toMatchObject({ code: "exists" });
      await expect(store.sessions.addCheck(newCheck, heard)).rejects.toMatchObject({ code: "exists" });
      expect(await store.sessions.checks(scope, sessionId)).toEqual([check]);
      expect(await store.processed.get(scope, newHeard.id)).toBeNull();
      const lost = store.sessions.addCheck(checkOf(scope, "nobody"), processedOf(scope, "nobody", 5));
      await expect(lost).rejects.toMatchObject({ code: "unknown-parent" });
      // After its session's recordings have expired, under a new key.
      await store.sessions.stop(scope, sessionId, 5_000);
      expect(await store.processed.expire(scope, 6_000)).toBe(1);
      await store.sessions.addCheck(newCheck, newHeard);
      expect(await store.processed.get(scope, newHeard.id)).toEqual(newHeard);
    });

    describe("recordings", () => {
      test("are returned byte for byte", async () => {
        const scope = newScope();
        const { id: sessionId } = await startSession(store, scope);
        const whole = mediaOf(scope, sessionId, { encoding: "wav", channels: 2 });
        const part = mediaOf(scope, sessionId, { partOf: whole.id, audio: new Uint8Array(0) });
        const processed = processedOf(scope, sessionId, 1);
        const mute = processedOf(scope, sessionId, 2, { voiceClass: null, voice: { windows: [], embedding: null } });
        for (const segment of [whole, part]) await store.media.add(segment);
        for (const model of [processed, mute]) await store.processed.add(model);
        expect(await store.media.get(scope, whole.id)).toEqual(whole);
        expect(await store.media.get(scope, part.id)).toEqual(part);
        expect(await store.processed.get(scope, processed.id)).toEqual(processed);
        expect(await store.processed.get(scope, mute.id)).toEqual(mute);
        expect(await store.media.get(newScope(), whole.id)).toBeNull();
        expect(await store.processed.get(newScope(), processed.id)).toBeNull();
      });

      test("are listed by session, without the sealed data", async () => {
        const scope = newScope();
        const [{ id: sessionId }, { id: other }] = [await startSession(store, scope), await startSession(store, scope)];
        const [segment, model] = [
          mediaOf(scope, sessionId, { id: "m-2" }),
          processedOf(scope, sessionId, 1, { id: "h-2" }),
        ];
        const { audio: _, ...media } = segment;
        const { voice: __, voiceClass: ___, ...heard } = model;
        await store.media.add(segment);
        await store.media.add(mediaOf(scope, sessionId, { id: "m-1" }));
        await store.media.add(mediaOf(scope, other));
        await store.processed.add(model);
        await store.processed.add(processedOf(scope, sessionId, 2, { id: "h-1" }));
        await store.processed.add(processedOf(scope, other, 3));
        const listedMedia = await store.media.ofSession(scope, sessionId);
        expect(listedMedia.map(({ id }) => id)).toEqual(["m-1", "m-2"]);
        expect(listedMedia[1]).toEqual(media);
        const listed = await store.processed.ofSession(scope, sessionId);
        expect(listed.map(({ id }) => id)).toEqual(["h-1", "h-2"]);
        expect(listed[1]).toEqual(heard);
        expect(await store.media.ofSession(newScope(), sessionId)).toEqual([]);
        expect(await store.processed.ofSession(newScope(), sessionId)).toEqual([]);
      });

      test("need a session of their scope", async () => {
        const scope = newScope();
        const { id: foreign } = await startSession(store, newScope());
        await expect(store.media.add(mediaOf(scope, foreign))).rejects.toMatchObject({ code: "unknown-parent" });
        await expect(store.processed.add(processedOf(scope, foreign, 1))).rejects.toMatchObject({
          code: "unknown-parent",
        });
      });

      test("refuses a duplicate id, and keeps the first", async () => {
        const scope = newScope();
        const { id: sessionId } = await startSession(store, scope);
        const media = mediaOf(scope, sessionId);
        await store.media.add(media);
        await expect(store.media.add({ ...media, audio: new Uint8Array(1) })).rejects.toMatchObject({ code: "exists" });
        expect(await store.media.get(scope, media.id)).toEqual(media);
      });

      test("shares no memory with its callers", async () => {
        const scope = newScope();
        const { id: sessionId } = await startSession(store, scope);
        // Views into larger buffers, as decoders return them.
        const audio = new Uint8Array(64).fill(9).subarray(8, 24);
        const embedding = new Float32Array(1_000).fill(0.5).subarray(100, 108);
        const media = mediaOf(scope, sessionId, { audio });
        const processed = processedOf(scope, sessionId, 1, { voice: { windows: [], embedding } });
        await store.media.add(media);
        await store.processed.add(processed);
        audio.fill(1);
        embedding.fill(1);
        const read = (await store.media.get(scope, media.id))!;
        expect(read.audio).toEqual(new Uint8Array(16).fill(9));
        read.audio.fill(2);
        expect((await store.media.get(scope, media.id))!.audio).toEqual(new Uint8Array(16).fill(9));
        const model = (await store.processed.get(scope, processed.id))!;
        expect(model.voice.embedding).toEqual(new Float32Array(8).fill(0.5));
        model.voice.embedding!.fill(3);
        expect((await store.processed.get(scope, processed.id))!.voice.embedding![0]).toBe(0.5);
      });

      test("of sessions that were started or stopped while the clock was ahead expire as if that had been now", async () => {
        const scope = newScope();
        // Far in the future, so that the other tests are not affected.
        const now = 9e15;
        const ahead = await startSession(store, scope, { startedAt: now - 200, stoppedAt: now + 1000 });
        const past = await startSession(store, scope, { startedAt: now - 200, stoppedAt: now - 100 });
        const open = await startSession(store, scope, { startedAt: now - 200 });
        const abandoned = await startSession(store, scope, { startedAt: now + 1000 });
        for (const { id } of [ahead, past, open, abandoned]) await store.media.add(mediaOf(scope, id));
        await store.sessions.capTimes(now);
        const stops = await Promise.all([ahead, past, open].map(({ id }) => store.sessions.get(scope, id)));
        expect(stops.map((session) => session!.stoppedAt)).toEqual([now, now - 100, null]);
        expect(await store.media.expire(scope, now - 50)).toBe(1);
        expect(await store.media.expire(scope, now + 1)).toBe(1);
        expect(await store.media.expire(scope, now + 1, now - 100)).toBe(1);
        expect(await store.media.expire(scope, now + 1, now + 1)).toBe(1);
      });

      test("expire with their session, by scope or everywhere", async () => {
        const [scope, other] = [newScope(), newScope()];
        // Far in the past, so that expiring everywhere does not affect the other tests.
        const ended = await startSession(store, scope, { startedAt: -500, stoppedAt: -400 });
        const later = await startSession(store, scope, { startedAt: -500, stoppedAt: -100 });
        const open = await startSession(store, scope, { startedAt: -500 });
        const foreign = await startSession(store, other, { startedAt: -500, stoppedAt: -400 });
        const media: MediaSegment[] = [];
        const models: ProcessedAudio[] = [];
        for (const session of [ended, ended, later, open, foreign]) {
          const segment = mediaOf(session.scopeId, session.id);
          const model = processedOf(session.scopeId, session.id, 1, { mediaSegmentId: segment.id });
          await store.media.add(segment);
          await store.processed.add(model);
          media.push(segment);
          models.push(model);
        }
        const mediaLeft = async () => {
          const found = await Promise.all(media.map(({ scopeId, id }) => store.media.get(scopeId, id)));
          return found.map((segment) => segment !== null);
        };
        expect(await store.media.expire(scope, -400)).toBe(0);
        expect(await store.media.expire(scope, -399)).toBe(2);
        expect(await mediaLeft()).toEqual([false, false, true, true, true]);
        expect(await store.media.expire(null, -399, -600)).toBe(1);
        expect(await store.media.expire(null, -99, -600)).toBe(1);
        expect(await mediaLeft()).toEqual([false, false, false, true, false]);
        // A session that was never stopped: its age is up to the caller.
        expect(await store.media.expire(scope, -99, -500)).toBe(0);
        expect(await store.media.expire(scope, -99, -499)).toBe(1);
        expect(await store.media.expire(scope, -99, -499)).toBe(0);
        // Audio models have their own retention, and a session can continue after an expiry.
        expect(await store.processed.get(scope, models[0]!.id)).toEqual(models[0]);
        expect(await store.processed.expire(scope, -399)).toBe(2);
        expect(await store.processed.get(scope, models[0]!.id)).toBeNull();
        expect(await store.processed.get(scope, models[2]!.id)).toEqual(models[2]);
        const more = mediaOf(scope, open.id);
        await store.media.add(more);
        expect(await store.media.get(scope, more.id)).toEqual(more);
      });
    });

    describe("profiles", () => {
      test("are created once for an owner and tag", async () => {
        const scope = newScope();
        const alice = profileOf(scope, "alice");
        const created = await store.profiles.create(alice);
        expect(created).toEqual({ ...alice, generation: created!.generation });
        expect(await store.profiles.get(scope, alice.id)).toEqual(created);
        expect(await store.profiles.create(profileOf(scope, "alice"))).toBeNull();
        // Another tag, kind or scope is another profile.
        const phone = await store.profiles.create(profileOf(scope, "alice", { tag: "phone" }));
        expect(phone?.owner).toEqual(alice.owner);
        const fraudster = await store.profiles.create(profileOf(scope, "alice", { kind: "fraudster" }));
        expect(fraudster?.owner.id).not.toBe(alice.owner.id);
        expect(await store.profiles.create(profileOf(newScope(), "alice"))).not.toBeNull();
        expect(await store.owners.find(scope, "person", "alice")).toEqual(alice.owner);
        const { externalId: _, ...nameless } = alice.owner;
        expect(await store.owners.getMany(scope, [alice.owner.id, "nobody", alice.owner.id])).toMatchObject([nameless]);
        expect(await store.owners.getMany(newScope(), [alice.owner.id])).toEqual([]);
        expect(await store.owners.find(scope, "person", "bob")).toBeNull();
        expect(await store.profiles.find(scope, "person", "alice", "phone")).toEqual(phone);
        expect(await store.profiles.find(scope, "person", "alice", "desk")).toBeNull();
        expect(await store.profiles.find(scope, "fraudster", "alice", "default")).toEqual(fraudster);
        expect(await store.profiles.ofOwners(scope, [alice.owner.id, alice.owner.id])).toEqual([created, phone]);
        expect(await store.profiles.get(newScope(), alice.id)).toBeNull();
        const byId = await store.profiles.getMany(scope, [alice.id, "nobody", phone!.id, alice.id]);
        expect(byId.map(({ id }) => id).sort()).toEqual([alice.id, phone!.id].sort());
        expect(byId.find(({ id }) => id === alice.id)).toEqual(created);
        expect(await store.profiles.getMany(newScope(), [alice.id])).toEqual([]);
      });

      test("created concurrently with one name: only one is created", async () => {
        const scope = newScope();
        const made = await Promise.all(
          Array.from({ length: 8 }, () => store.profiles.create(profileOf(scope, "twin"))),
        );
        expect(made.filter((profile) => profile !== null)).toHaveLength(1);
        expect(await store.profiles.list(scope, null, 10)).toHaveLength(1);
        expect([await store.profiles.count(scope), await store.profiles.count(newScope())]).toEqual([1, 0]);
      });

      test("are listed page by page, by id", async () => {
        const scope = newScope();
        const ids: string[] = [];
        for (const name of ["a", "b", "c", "d", "e"])
          ids.push((await store.profiles.create(profileOf(scope, name)))!.id);
        const pages: string[][] = [];
        for (let after: string | null = null; ; ) {
          const page = await store.profiles.list(scope, after, 2);
          if (page.length === 0) break;
          pages.push(page.map(({ id }) => id));
          after = page.at(-1)!.id;
        }
        expect(pages).toEqual([ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)]);
      });

      test("of one kind are listed in full pages, however many of the other kind are between them", async () => {
        const scope = newScope();
        const ids: string[] = [];
        for (let i = 0; i < 9; i++) {
          const kind = i % 4 === 0 ? "fraudster" : "person";
          const { id } = (await store.profiles.create(profileOf(scope, `name ${i}`, { kind })))!;
          if (kind === "fraudster") ids.push(id);
        }
        const list = async (after: string | null, limit: number, kind: "person" | "fraudster") =>
          (await store.profiles.list(scope, after, limit, kind)).map(({ id }) => id);
        expect(await list(null, 2, "fraudster")).toEqual(ids.slice(0, 2));
        expect(await list(ids[1]!, 2, "fraudster")).toEqual(ids.slice(2));
        expect(await list(null, 10, "fraudster")).toEqual(ids);
        expect(await list(null, 10, "person")).toHaveLength(6);
        expect(await list(ids[2]!, 10, "person")).toEqual([]);
      });

      test("take segments one write at a time", async () => {
        const scope = newScope();
        const { id: sessionId } = await startSession(store, scope);
        const { id, generation } = (await store.profiles.create(profileOf(scope, "alice")))!;
        const [first, second] = [processedOf(scope, sessionId, 1), processedOf(scope, sessionId, 5)];
        const add = (at: number, processed = first, profileId = id) =>
          store.profiles.addSegment(scope, profileId, at, segmentOf(profileId, processed));

        expect(await add(generation, first, "nobody")).toBe("missing");
        expect(await store.profiles.addSegment(newScope(), id, generation, segmentOf(id, first))).toBe("missing");
        expect(await add(generation + 1)).toBe("moved");
        expect(await add(generation)).toBe("added");
        const after = (await store.profiles.get(scope, id))!;
        expect(after.generation).not.toBe(generation);
        expect(after.printType).toBe("text-dependent");
        expect(await add(after.generation)).toBe("already");
        expect(await add(generation)).toBe("already");
        expect(await add(generation, second)).toBe("moved");
        const other = processedOf(scope, sessionId, 9, { printType: "text-independent" });
        expect(await add(after.generation, other)).toBe("wrong-type");
        expect(await add(after.generation, second)).toBe("added");
        expect(await store.profiles.segments(scope, id)).toEqual([segmentOf(id, first), segmentOf(id, second)]);
        expect(await store.profiles.segments(newScope(), id)).toEqual([]);
        expect((await store.profiles.get(scope, id))!.generation).not.toBe(after.generation);
      });

      test("keep segments when sessions delete them", async () => {
        const scope = newScope();
        const { profile, segment, processed } = await enrollPerson(store, scope, "alice", 3);
        await store.sessions.stop(scope, processed.sessionId, 2_000);
        expect(await store.processed.expire(scope, 3_000)).toBe(1);
        expect(await store.profiles.segments(scope, profile.id)).toEqual([segment]);
      });

      test("lose no segment when many are added at once", async () => {
        const scope = newScope();
        const { id: sessionId } = await startSession(store, scope);
        const { id } = (await store.profiles.create(profileOf(scope, "alice")))!;
        const models = Array.from({ length: 6 }, (_, i) => processedOf(scope, sessionId, i));
        await Promise.all(
          models.map(async (processed) => {
            for (;;) {
              const { generation } = (await store.profiles.get(scope, id))!;
              const answer = await store.profiles.addSegment(scope, id, generation, segmentOf(id, processed));
              if (answer !== "moved") return expect(answer).toBe("added");
            }
          }),
        );
        const kept = await store.profiles.segments(scope, id);
        expect(kept.map(({ processed }) => processed.id).sort()).toEqual(models.map((model) => model.id).sort());
      });

      test("train in one write, and only if unchanged since they were read", async () => {
        const scope = newScope();
        const { id, generation } = (await store.profiles.create(profileOf(scope, "alice")))!;
        const trained = { template: templateOf(1), status: 3, printVersion: 1 };
        expect(await store.profiles.train(scope, id, generation + 7, trained)).toBe(false);
        expect(await store.profiles.train(scope, "nobody", generation, trained)).toBe(false);
        expect(await store.profiles.train(newScope(), id, generation, trained)).toBe(false);
        expect(await store.profiles.train(scope, id, generation, trained)).toBe(true);
        expect(await store.profiles.train(scope, id, generation, { ...trained, printVersion: 2 })).toBe(false);
        const profile = (await store.profiles.get(scope, id))!;
        expect(profile).toMatchObject({ template: trained.template, status: 3, printVersion: 1 });
        profile.template!.embedding.fill(0);
        expect((await store.profiles.get(scope, id))!.template).toEqual(trained.template);
      });

      test("replace their segments when retrained for another model", async () => {
        const scope = newScope();
        const { profile, session } = await enrollPerson(store, scope, "alice", 3);
        const anew = segmentOf(profile.id, processedOf(scope, session.id, 8, { revision: "ab".repeat(32) }));
        const { embedding, netSpeechSeconds, snrDb, bandwidthHz } = templateOf(9);
        const member = { embedding, netSpeechSeconds, snrDb, bandwidthHz };
        // An adapted print: its parts are stored with it.
        const grown = { enrolled: member, sessions: [{ ...member, sessionId: "s", at: 7 }] };
        const template = { ...templateOf(8), revision: "ab".repeat(32), calibrationModelId: "model", grown };
        const retrained = { template, status: 2, printVersion: 2, segments: [anew] };
        expect(await store.profiles.train(scope, profile.id, profile.generation - 1, retrained)).toBe(false);
        expect(await store.profiles.train(scope, profile.id, profile.generation, retrained)).toBe(true);
        expect(await store.profiles.segments(scope, profile.id)).toEqual([anew]);
        expect((await store.profiles.get(scope, profile.id))!.template).toEqual(template);
      });
    });

    describe("prints", () => {
      const collect = async (prints: AsyncIterable<Print>) => {
        const all: Print[] = [];
        for await (const print of prints) all.push(print);
        return all.sort((a, b) => (a.profileId < b.profileId ? -1 : 1));
      };

      test("are the trained profiles of a scope and kind", async () => {
        const scope = newScope();
        const alice = await enrollPerson(store, scope, "alice", 1);
        const bob = await enrollPerson(store, scope, "bob", 2);
        const mallory = await enrollPerson(store, scope, "mallory", 3, { kind: "fraudster", tag: "2026" });
        const untrained = (await store.profiles.create(profileOf(scope, "carol")))!;
        await enrollPerson(store, newScope(), "alice", 4);
        const persons = await collect(store.profiles.prints(scope, "person"));
        expect(persons.map(({ profileId }) => profileId)).toEqual([alice.profile.id, bob.profile.id]);
        expect(await collect(store.profiles.prints(scope, "fraudster"))).toEqual([
          {
            profileId: mallory.profile.id,
            ownerId: mallory.profile.owner.id,
            ownerExternalId: "mallory",
            kind: "fraudster",
            tag: "2026",
            printVersion: 1,
            template: templateOf(3),
          },
        ]);
        const asked = [bob.profile.id, "nobody", untrained.id, mallory.profile.id, bob.profile.id];
        const found = await store.profiles.printsOf(scope, asked);
        expect(found.map(({ ownerExternalId }) => ownerExternalId).sort()).toEqual(["bob", "mallory"]);
        expect(await store.profiles.printsOf(newScope(), asked)).toEqual([]);
        expect(await store.profiles.printsOf(scope, [])).toEqual([]);
      });

      test("are left out while consent is withdrawn", async () => {
        const scope = newScope();
        const { profile } = await enrollPerson(store, scope, "alice", 1);
        const printsOf = async () => {
          const all: Print[] = [];
          for await (const print of store.profiles.prints(scope, "person")) all.push(print);
          expect(await store.profiles.printsOf(scope, [profile.id])).toEqual(all);
          return all.length;
        };
        const loaded = await store.profiles.printsVersion(scope);
        const withdrawn = { state: "withdrawn", at: 7, reference: "letter" } as const;
        expect(await store.profiles.setConsent(scope, profile.id, withdrawn)).toBe(true);
        const { generation } = profile;
        expect(await store.profiles.get(scope, profile.id)).toEqual({
          ...profile,
          consent: withdrawn,
          generation: generation + 1,
        });
        expect((await store.profiles.printsChangedSince(scope, loaded)).ids).toEqual([profile.id]);
        expect(await printsOf()).toBe(0);
        // A caller that read the profile before must read it again.
        const trained = { template: templateOf(5), status: 2, printVersion: 2 };
        expect(await store.profiles.train(scope, profile.id, generation, trained)).toBe(false);
        await store.profiles.setConsent(scope, profile.id, { state: "given", at: 8, reference: "" });
        expect(await printsOf()).toBe(1);
        expect(await store.profiles.setConsent(newScope(), profile.id, withdrawn)).toBe(false);
        expect(await store.profiles.setConsent(scope, newId(), withdrawn)).toBe(false);
      });

      test("report what changed since a gallery was loaded", async () => {
        const scope = newScope();
        expect(await store.profiles.printsVersion(scope)).toBe(0);
        expect(await store.profiles.printsChangedSince(scope, 0)).toEqual({ version: 0, ids: [] });
        const alice = await enrollPerson(store, scope, "alice", 1);
        const bob = await enrollPerson(store, scope, "bob", 2);
        const loaded = await store.profiles.printsVersion(scope);
        expect(loaded).toBeGreaterThan(0);
        expect(await store.profiles.printsChangedSince(scope, loaded)).toEqual({ version: loaded, ids: [] });
        // Writes that do not touch a print change nothing.
        await store.profiles.create(profileOf(scope, "carol"));
        expect(await store.profiles.printsVersion(scope)).toBe(loaded);
        await store.profiles.erase(scope, alice.profile.id);
        const erased = await store.profiles.printsChangedSince(scope, loaded);
        expect(erased).toEqual({ version: erased.version, ids: [alice.profile.id] });
        expect(erased.version).toBeGreaterThan(loaded);
        const again = { template: templateOf(5), status: 2, printVersion: 2 };
        await store.profiles.train(scope, bob.profile.id, bob.profile.generation, again);
        expect((await store.profiles.printsChangedSince(scope, erased.version)).ids).toEqual([bob.profile.id]);
        const all = [alice.profile.id, bob.profile.id].sort();
        expect((await store.profiles.printsChangedSince(scope, 0)).ids.sort()).toEqual(all);
        // A version from the future: the store was restored, so everything counts as changed.
        expect((await store.profiles.printsChangedSince(scope, 1e9)).ids.sort()).toEqual(all);
        expect(await store.profiles.printsVersion(newScope())).toBe(0);
      });
    });

    describe("erasing", () => {
      test("removes everything of the person", async () => {
        const scope = newScope();
        const alice = await enrollPerson(store, scope, "alice", 1);
        const part = mediaOf(scope, alice.session.id, { partOf: alice.media.id });
        const check = processedOf(scope, alice.session.id, 2, { mediaSegmentId: part.id, source: "check" });
        const unrelated = mediaOf(scope, alice.session.id);
        const unrelatedModel = processedOf(scope, alice.session.id, 3, { mediaSegmentId: unrelated.id });
        for (const media of [part, unrelated]) await store.media.add(media);
        for (const model of [check, unrelatedModel]) await store.processed.add(model);
        const group = groupOf(scope, { profileIds: [alice.profile.id, "x"], ownerIds: [alice.profile.owner.id, "y"] });
        await store.groups.create(group);

        expect(await store.profiles.erase(newScope(), alice.profile.id)).toBe(false);
        expect(await store.profiles.erase(scope, alice.profile.id)).toBe(true);
        expect(await store.profiles.erase(scope, alice.profile.id)).toBe(false);

        expect(await store.profiles.get(scope, alice.profile.id)).toBeNull();
        expect(await store.profiles.find(scope, "person", "alice", "default")).toBeNull();
        expect(await store.profiles.list(scope, null, 10)).toEqual([]);
        expect(await store.profiles.segments(scope, alice.profile.id)).toEqual([]);
        expect(await store.profiles.printsOf(scope, [alice.profile.id])).toEqual([]);
        expect(await store.owners.find(scope, "person", "alice")).toBeNull();
        expect(await store.owners.getMany(scope, [alice.profile.owner.id])).toEqual([]);
        for (const { id } of [alice.media, part]) expect(await store.media.get(scope, id)).toBeNull();
        for (const { id } of [alice.processed, check]) expect(await store.processed.get(scope, id)).toBeNull();
        expect(await store.groups.get(scope, "group", group.id)).toEqual({
          ...group,
          profileIds: ["x"],
          ownerIds: ["y"],
        });
        // The rest of the call stays readable.
        expect(await store.media.get(scope, unrelated.id)).toEqual(unrelated);
        expect(await store.processed.get(scope, unrelatedModel.id)).toEqual(unrelatedModel);
        // The name can be used again.
        expect(await store.profiles.create(profileOf(scope, "alice"))).not.toBeNull();
      });

      test("removes all audio models of a recording whose audio has expired", async () => {
        const scope = newScope();
        const [{ id: call }, { id: later }] = [await startSession(store, scope), await startSession(store, scope)];
        const whole = mediaOf(scope, call);
        const parts = [mediaOf(scope, call, { partOf: whole.id }), mediaOf(scope, call, { partOf: whole.id })];
        const unrelated = mediaOf(scope, call);
        for (const media of [whole, ...parts, unrelated]) await store.media.add(media);
        const modelOf = async ({ id, partOf }: MediaSegment, sessionId: string, seed: number) => {
          const model = processedOf(scope, sessionId, seed, { mediaSegmentId: id, ...(partOf !== null && { partOf }) });
          await store.processed.add(model);
          return model;
        };
        const enroll = async (name: string, model: ProcessedAudio) => {
          const profile = (await store.profiles.create(profileOf(scope, name)))!;
          const added = await store.profiles.addSegment(scope, profile.id, 0, segmentOf(profile.id, model));
          expect(added).toBe("added");
          return profile;
        };
        const [alice, bob] = [
          await enroll("alice", await modelOf(parts[0]!, call, 1)),
          await enroll("bob", await modelOf(parts[0]!, call, 2)),
        ];
        const [whatBobEnrolled] = await store.profiles.segments(scope, bob.id);
        const siblings = [await modelOf(whole, later, 3), await modelOf(parts[1]!, later, 4)];
        const other = await modelOf(unrelated, later, 5);
        await store.sessions.stop(scope, call, 2_000);
        expect(await store.media.expire(scope, 3_000)).toBe(4);
        const checked = await modelOf(parts[1]!, later, 6);
        const check = checkOf(scope, later, { audioModelId: checked.id, matchedProfileIds: [alice.id] });
        await store.sessions.addCheck(check);
        expect(await store.processed.get(scope, siblings[1]!.id)).toEqual(siblings[1]);
        expect(await store.profiles.erase(scope, alice.id)).toBe(true);
        for (const { id } of [...siblings, checked]) expect(await store.processed.get(scope, id)).toBeNull();
        // Another voice stays, and another recording.
        for (const model of [whatBobEnrolled!.processed, other])
          expect(await store.processed.get(scope, model.id)).toEqual(model);

        // Also when the audio model that was enrolled has expired.
        expect(await store.processed.expire(scope, 3_000)).toBe(1);
        const again = await modelOf(whole, later, 7);
        expect(await store.profiles.erase(scope, bob.id)).toBe(true);
        expect(await store.processed.get(scope, again.id)).toBeNull();
        expect(await store.processed.get(scope, other.id)).toEqual(other);
      });

      test("removes the recordings of checks that it matched, and no others", async () => {
        const scope = newScope();
        const alice = await enrollPerson(store, scope, "alice", 1);
        const bob = await enrollPerson(store, scope, "bob", 2);
        const session = alice.session.id;
        const heard = async (seed: number, matched: readonly string[], apart: boolean) => {
          const media = mediaOf(scope, session);
          const model = processedOf(scope, session, seed, { mediaSegmentId: media.id, source: "check" });
          await store.media.add(media);
          const check = checkOf(scope, session, { audioModelId: model.id, matchedProfileIds: matched });
          // The audio model is new with the check, or existed before it.
          if (apart) await store.processed.add(model);
          await store.sessions.addCheck(check, apart ? undefined : model);
          return { media, model };
        };
        const [own, earlier, both, others] = [
          await heard(3, [alice.profile.id], false),
          await heard(4, [alice.profile.id], true),
          await heard(5, [bob.profile.id, alice.profile.id], false),
          await heard(6, [bob.profile.id], false),
        ];
        // A voice that another profile was enrolled from stays with that profile.
        const enrolled = await heard(7, [alice.profile.id], true);
        const segment = segmentOf(bob.profile.id, enrolled.model);
        const { generation } = (await store.profiles.get(scope, bob.profile.id))!;
        expect(await store.profiles.addSegment(scope, bob.profile.id, generation, segment)).toBe("added");
        const checks = await store.sessions.checks(scope, session);
        await store.profiles.erase(scope, alice.profile.id);
        for (const { media, model } of [own, earlier, both]) {
          expect(await store.processed.get(scope, model.id)).toBeNull();
          expect(await store.media.get(scope, media.id)).toBeNull();
        }
        for (const { media, model } of [others, enrolled]) {
          expect(await store.processed.get(scope, model.id)).toEqual(model);
          expect(await store.media.get(scope, media.id)).toEqual(media);
        }
        expect(await store.sessions.checks(scope, session)).toEqual(checks);
      });

      test("keeps what others were enrolled from, and an owner with another profile", async () => {
        const scope = newScope();
        const alice = await enrollPerson(store, scope, "alice", 1);
        const phone = (await store.profiles.create(profileOf(scope, "alice", { tag: "phone" })))!;
        const bob = (await store.profiles.create(profileOf(scope, "bob")))!;
        // The other channel of the same call is another voice.
        const channel = processedOf(scope, alice.session.id, 7, { mediaSegmentId: alice.media.id, channel: 2 });
        await store.processed.add(channel);
        await store.profiles.addSegment(scope, bob.id, bob.generation, segmentOf(bob.id, channel));
        expect(await store.profiles.erase(scope, alice.profile.id)).toBe(true);
        expect(await store.processed.get(scope, channel.id)).toEqual(channel);
        expect(await store.profiles.segments(scope, bob.id)).toEqual([segmentOf(bob.id, channel)]);
        expect(await store.profiles.get(scope, phone.id)).toEqual(phone);
        expect(await store.owners.find(scope, "person", "alice")).toEqual(phone.owner);
      });

      test("during a check that matched keeps the check, but not its audio model", async () => {
        const scope = newScope();
        const bob = await enrollPerson(store, scope, "bob", 99);
        const ended = async (profileId: string, sessionId: string) => {
          const heard = processedOf(scope, sessionId, 60, { source: "check" });
          const matchedProfileIds = [bob.profile.id, profileId];
          const check = checkOf(scope, sessionId, { profileId, audioModelId: heard.id, matchedProfileIds });
          await store.sessions.addCheck(check, heard);
          return { check, heard };
        };
        for (let round = 0; round < 10; round++) {
          const { profile, session } = await enrollPerson(store, scope, `person ${round}`, round);
          // A key that the erasure does not replace.
          const other = await startSession(store, scope);
          await store.processed.add(processedOf(scope, other.id, 70));
          const [during] = await Promise.all([
            ended(profile.id, round % 2 === 0 ? session.id : other.id),
            store.profiles.erase(scope, profile.id),
          ]);
          const after = await ended(profile.id, other.id);
          for (const { heard } of [during, after]) expect(await store.processed.get(scope, heard.id)).toBeNull();
          const checks = await store.sessions.checks(scope, other.id);
          expect(checks.at(-1)).toEqual({ ...after.check, audioModelId: null });
          const { decision } = during.check;
          expect(await store.sessions.checks(scope, during.check.sessionId)).toContainEqual(
            expect.objectContaining({ id: during.check.id, decision }),
          );
        }
        // It is erased with nobody: the other print that matched is still there.
        expect(await store.profiles.get(scope, bob.profile.id)).toEqual(bob.profile);
      });

      test("while its recordings are stored leaves none of them", async () => {
        const scope = newScope();
        for (let round = 0; round < 10; round++) {
          const { profile, session } = await enrollPerson(store, scope, `person ${round}`, round);
          const other = await startSession(store, scope);
          const media = mediaOf(scope, other.id);
          const heard = processedOf(scope, other.id, 60, { mediaSegmentId: media.id });
          const { generation } = (await store.profiles.get(scope, profile.id))!;
          const segment = { profileId: profile.id, processed: heard, addedAt: 1 };
          expect(await store.profiles.addSegment(scope, profile.id, generation, segment)).toBe("added");
          const stored = async () => {
            await store.media.add(media, profile.id);
            await store.processed.add(heard, profile.id);
          };
          if (round === 0) {
            await stored();
            expect(await store.media.get(scope, media.id)).toEqual(media);
            expect(await store.processed.get(scope, heard.id)).toEqual(heard);
            await store.profiles.erase(scope, profile.id);
          } else await Promise.all([stored(), store.profiles.erase(scope, profile.id)]);
          const late = mediaOf(scope, session.id);
          await store.media.add(late, profile.id);
          await store.processed.add(processedOf(scope, session.id, 61), profile.id);
          for (const { id } of [other, session]) {
            expect(await store.media.ofSession(scope, id)).toEqual([]);
            expect(await store.processed.ofSession(scope, id)).toEqual([]);
          }
        }
      });

      test("during training and enrolling leaves nothing incomplete", async () => {
        const scope = newScope();
        for (let round = 0; round < 5; round++) {
          const { profile, session } = await enrollPerson(store, scope, `person ${round}`, round);
          const segment = segmentOf(profile.id, processedOf(scope, session.id, 50));
          const trained = { template: templateOf(9), status: 3, printVersion: 2 };
          const [erased, erasedTwice] = await Promise.all([
            store.profiles.erase(scope, profile.id),
            store.profiles.erase(scope, profile.id),
            store.profiles.addSegment(scope, profile.id, profile.generation, segment),
            store.profiles.train(scope, profile.id, profile.generation, trained),
          ]);
          expect([erased, erasedTwice].filter(Boolean)).toHaveLength(1);
          expect(await store.profiles.get(scope, profile.id)).toBeNull();
          expect(await store.profiles.segments(scope, profile.id)).toEqual([]);
          expect(await store.profiles.printsOf(scope, [profile.id])).toEqual([]);
        }
      });
    });

    describe("groups and watchlists", () => {
      test("keep their members, each once, in order", async () => {
        const scope = newScope();
        const group = groupOf(scope, { profileIds: ["c", "a", "c"], ownerIds: ["o"] });
        await store.groups.create(group);
        const watchlist = groupOf(scope, { kind: "watchlist", tag: "2026" });
        await store.groups.create(watchlist);
        await expect(store.groups.create(group)).rejects.toMatchObject({ code: "exists" });
        const stored = { ...group, profileIds: ["c", "a"] };
        expect(await store.groups.get(scope, "group", group.id)).toEqual(stored);
        expect(await store.groups.get(scope, "watchlist", group.id)).toBeNull();
        expect(await store.groups.get(newScope(), "group", group.id)).toBeNull();
        const versions = [await store.groups.version(scope, "group", stored.id)];
        await store.groups.addMembers(scope, "group", stored.id, { profileIds: [], ownerIds: ["one more"] });
        versions.push(await store.groups.version(scope, "group", stored.id));
        await store.groups.removeMembers(scope, "group", stored.id, { profileIds: [], ownerIds: ["one more"] });
        versions.push(await store.groups.version(scope, "group", stored.id));
        expect(versions.every((version, i) => i === 0 || version! > versions[i - 1]!)).toBe(true);
        expect(await store.groups.get(scope, "group", stored.id)).toEqual(stored);
        expect(await store.groups.version(scope, "watchlist", stored.id)).toBeNull();
        expect(await store.groups.version(newScope(), "group", stored.id)).toBeNull();
        const members = { profileIds: ["a", "b"], ownerIds: ["p"] };
        expect(await store.groups.addMembers(scope, "group", group.id, members)).toBe(true);
        expect(await store.groups.addMembers(scope, "watchlist", group.id, members)).toBe(false);
        expect(await store.groups.addMembers(newScope(), "group", group.id, members)).toBe(false);
        expect(await store.groups.get(scope, "group", group.id)).toEqual({
          ...group,
          profileIds: ["c", "a", "b"],
          ownerIds: ["o", "p"],
        });
        const leaving = { profileIds: ["c", "unknown"], ownerIds: ["o"] };
        expect(await store.groups.removeMembers(scope, "group", group.id, leaving)).toBe(true);
        expect(await store.groups.removeMembers(scope, "group", "nobody", leaving)).toBe(false);
        expect(await store.groups.get(scope, "group", group.id)).toEqual({
          ...group,
          profileIds: ["a", "b"],
          ownerIds: ["p"],
        });
        expect(await store.groups.delete(scope, "watchlist", group.id)).toBe(false);
        expect(await store.groups.delete(scope, "group", group.id)).toBe(true);
        expect(await store.groups.delete(scope, "group", group.id)).toBe(false);
        expect(await store.groups.get(scope, "group", group.id)).toBeNull();
        expect(await store.groups.get(scope, "watchlist", watchlist.id)).toEqual(watchlist);
      });

      test("are found by their tag", async () => {
        const scope = newScope();
        const tags = ["vip", "VIP", "", 'a"b\\', `"tag":"vip"`, "\0 \ud800 ü", "long".repeat(5000)];
        for (const tag of tags) {
          const [one, two] = [groupOf(scope, { tag, id: `${tag.slice(0, 20)} 1` }), groupOf(scope, { tag })];
          for (const group of [one, two]) await store.groups.create(group);
          const watchlist = groupOf(scope, { kind: "watchlist", tag });
          await store.groups.create(watchlist);
          const found = await store.groups.withTag(scope, "group", tag, 9);
          expect([...found].sort()).toEqual([one.id, two.id].sort());
          expect(await store.groups.withTag(scope, "group", tag, 1)).toHaveLength(1);
          expect(await store.groups.withTag(scope, "watchlist", tag, 9)).toEqual([watchlist.id]);
        }
        expect(await store.groups.withTag(scope, "group", "vi", 9)).toEqual([]);
        expect(await store.groups.withTag(newScope(), "group", "vip", 9)).toEqual([]);
      });

      test("are counted without their members, page by page, and found by a member", async () => {
        const scope = newScope();
        const groups = [
          groupOf(scope, { id: "a", profileIds: ["p", "q"], ownerIds: ["o"] }),
          groupOf(scope, { id: "b" }),
          groupOf(scope, { id: "c", ownerIds: ["o", "r\0"] }),
        ];
        const watchlist = groupOf(scope, { id: "aa", kind: "watchlist", profileIds: ["p"] });
        for (const group of [groups[2]!, watchlist, groups[1]!, groups[0]!]) await store.groups.create(group);
        await store.groups.create(groupOf(newScope(), { id: "a", profileIds: ["p"], ownerIds: ["o"] }));
        const name = ({ id, scopeId, kind, tag }: Group) => ({ id, scopeId, kind, tag });
        const sizes = groups.map((group) => ({
          ...name(group),
          profiles: group.profileIds.length,
          owners: group.ownerIds.length,
        }));
        expect(await store.groups.sizes(scope, "group", null, 10)).toEqual(sizes);
        expect(await store.groups.sizes(scope, "group", null, 2)).toEqual(sizes.slice(0, 2));
        expect(await store.groups.sizes(scope, "group", "a", 2)).toEqual(sizes.slice(1));
        expect(await store.groups.sizes(scope, "group", "c", 2)).toEqual([]);
        expect(await store.groups.sizes(scope, "watchlist", "a", 2)).toEqual([
          { ...name(watchlist), profiles: 1, owners: 0 },
        ]);
        expect(await store.groups.sizes(newScope(), "group", null, 2)).toEqual([]);
        const holding = (profileId: string, ownerId: string) => store.groups.holding(scope, profileId, ownerId);
        expect(await holding("p", "o")).toEqual([groups[0]!, watchlist, groups[2]!].map(name));
        expect(await holding("q", "p")).toEqual([name(groups[0]!)]);
        expect(await holding("o", "r\0")).toEqual([name(groups[2]!)]);
        expect(await holding("o", "p")).toEqual([]);
      });

      test("hold ten thousand members", async () => {
        const scope = newScope();
        const profileIds = Array.from({ length: 10_000 }, (_, i) => `profile-${i}`);
        const group = groupOf(scope);
        await store.groups.create(group);
        expect(await store.groups.addMembers(scope, "group", group.id, { profileIds, ownerIds: [] })).toBe(true);
        expect((await store.groups.get(scope, "group", group.id))!.profileIds).toEqual(profileIds);
      });
    });

    describe("jobs", () => {
      // The first of them: where stores share a database, jobs that other tests left would have to be worked on before, one each second.
      test(
        "run once, are retried when the handler throws, and fail after three attempts",
        async () => {
          const ours = await open({ now: () => now });
          try {
            const scope = newScope();
            const [good, shaky, bad] = [jobOf(scope), jobOf(scope), jobOf(scope, { kind: "retrain" })];
            const tries = new Map<string, number>();
            await ours.jobs.create(good);
            await ours.jobs.work(async (job: Job) => {
              const count = (tries.get(job.id) ?? 0) + 1;
              tries.set(job.id, count);
              if (job.scopeId !== scope) return;
              await ours.jobs.update(scope, job.id, { state: 2, progress: 0.5 });
              if (job.id === bad.id || (job.id === shaky.id && count === 1)) throw new Error("not this time");
              await ours.jobs.update(scope, job.id, { state: 3, progress: 1, result: { seen: job.request } });
            });
            for (const job of [shaky, bad]) await ours.jobs.create(job);
            await expect
              .poll(
                async () => {
                  const jobs = await Promise.all([good, shaky, bad].map(({ id }) => ours.jobs.get(scope, id)));
                  return jobs.map((job) => job?.state);
                },
                { timeout: OPENING_TIMEOUT_MS / 2 },
              )
              .toEqual([3, 3, 4]);
            expect([good, shaky, bad].map(({ id }) => tries.get(id))).toEqual([1, 2, 3]);
            expect(await ours.jobs.get(scope, good.id)).toEqual({
              ...good,
              state: 3,
              progress: 1,
              result: { seen: good.request },
            });
          } finally {
            await ours.close();
          }
        },
        OPENING_TIMEOUT_MS,
      );

      test("are kept and updated", async () => {
        const scope = newScope();
        const job = jobOf(scope);
        await store.jobs.create(job);
        expect(await store.jobs.get(scope, job.id)).toMatchObject({ ...job, state: expect.any(Number) });
        expect(await store.jobs.get(newScope(), job.id)).toBeNull();
        expect(await store.jobs.update(newScope(), job.id, { progress: 1 })).toBe(false);
        await expect(store.jobs.create(job)).rejects.toMatchObject({ code: "exists" });
      });

      test("of one scope are limited, also when many are created at once; one that ends makes room", async () => {
        const scope = newScope();
        const createdAt = 9_000;
        const [running, ended] = [jobOf(scope, { state: 2, createdAt }), jobOf(scope, { state: 3, createdAt })];
        for (const job of [running, ended]) expect(await store.jobs.create(job, 2)).toBe(true);
        const many = Array.from({ length: 8 }, () => jobOf(scope));
        const created = await Promise.all(many.map((job) => store.jobs.create(job, 4)));
        expect(created.filter(Boolean)).toHaveLength(3);
        const found = await Promise.all(many.map(({ id }) => store.jobs.get(scope, id)));
        expect(found.map((job) => job !== null)).toEqual(created);
        expect(await store.jobs.create(jobOf(newScope()), 4)).toBe(true);
        await store.jobs.update(scope, running.id, { state: 4 });
        expect(await store.jobs.create(jobOf(scope), 4)).toBe(true);
        expect(await store.jobs.create(jobOf(scope), 4)).toBe(false);
      });

      test("are removed after they have ended, not before", async () => {
        const scope = newScope();
        const [old, running, young] = [
          jobOf(scope, { createdAt: 1000 }),
          jobOf(scope, { createdAt: 1000 }),
          jobOf(scope, { createdAt: 2000 }),
        ];
        // Those of other tests.
        await store.jobs.expire(2000);
        for (const job of [old, running, young]) await store.jobs.create(job);
        for (const { id } of [old, young]) await store.jobs.update(scope, id, { state: 3, result: ["all of it"] });
        expect(await store.jobs.expire(2000)).toBe(1);
        const left = await Promise.all([old, running, young].map(({ id }) => store.jobs.get(scope, id)));
        expect(left.map((job) => job?.id)).toEqual([undefined, running.id, young.id]);
        await store.jobs.update(scope, running.id, { state: 4 });
        expect(await store.jobs.expire(2000)).toBe(1);
        expect(await store.jobs.get(scope, running.id)).toBeNull();
      });

      test("that have ended are removed when they need too many bytes, the oldest first, and never the newest", async () => {
        const scope = newScope();
        const made = [3000, 1000, 2000, 500, 4000].map((createdAt) => jobOf(scope, { createdAt }));
        const elsewhere = jobOf(newScope(), { createdAt: 1 });
        for (const job of [...made, elsewhere]) await store.jobs.create(job);
        const result = ["x".repeat(10_000)];
        for (const { scopeId, id } of [...made, elsewhere]) await store.jobs.update(scopeId, id, { state: 3, result });
        // The oldest of the scope has not ended.
        await store.jobs.update(scope, made[3]!.id, { state: 2 });
        const left = async () => {
          const found = await Promise.all(made.map(({ id }) => store.jobs.get(scope, id)));
          return found.flatMap((job) => job?.createdAt ?? []).sort((one, other) => one - other);
        };
        expect(await store.jobs.trim(scope, 45_000)).toBe(0);
        expect(await store.jobs.trim(scope, 25_000)).toBe(2);
        expect(await left()).toEqual([500, 3000, 4000]);
        expect(await store.jobs.trim(scope, 0)).toBe(1);
        expect(await store.jobs.trim(scope, 0)).toBe(0);
        expect(await left()).toEqual([500, 4000]);
        expect(await store.jobs.get(elsewhere.scopeId, elsewhere.id)).not.toBeNull();
      });
    });

    describe("documents", () => {
      const documents = [
        { name: "nested", list: [1, "zwei", null, { deep: true }] },
        "text",
        17.5,
        true,
        { "odd\0key": 'lone \ud800 surrogate, NUL \0, quote " and back\\slash' },
      ];

      test("are JSON values by collection and id", async () => {
        const collection = newId("collection");
        for (const [i, document] of documents.entries()) {
          await store.documents.put(collection, `id ${i}`, document);
          expect(await store.documents.get(collection, `id ${i}`)).toEqual(document);
        }
        expect(await store.documents.get(collection, "id")).toBeNull();
        expect(await store.documents.get(newId("collection"), "id 0")).toBeNull();
        const listed = await store.documents.list(collection);
        expect(listed).toEqual(documents.map((document, i) => ({ id: `id ${i}`, document })));
        await store.documents.put(collection, "id 0", "replaced");
        expect(await store.documents.get(collection, "id 0")).toBe("replaced");
        expect(await store.documents.delete(collection, "id 0")).toBe(true);
        expect(await store.documents.delete(collection, "id 0")).toBe(false);
        expect(await store.documents.list(newId("collection"))).toEqual([]);
      });

      test("are inserted once", async () => {
        const collection = newId("collection");
        const answers = await Promise.all(
          Array.from({ length: 5 }, (_, i) => store.documents.insert(collection, "id", { i })),
        );
        expect(answers.filter(Boolean)).toHaveLength(1);
        expect(await store.documents.get(collection, "id")).toEqual({ i: answers.indexOf(true) });
      });

      test("are changed by one caller at a time", async () => {
        const collection = newId("collection");
        const increment = () =>
          store.documents.update(collection, "counter", (document) => ({
            count: ((document as { count: number } | null)?.count ?? 0) + 1,
          }));
        await Promise.all(Array.from({ length: 20 }, increment));
        expect(await store.documents.get(collection, "counter")).toEqual({ count: 20 });
        await store.documents.update(collection, "counter", () => undefined);
        expect(await store.documents.get(collection, "counter")).toEqual({ count: 20 });
        const refuse = () => {
          throw new RangeError("no");
        };
        await expect(store.documents.update(collection, "counter", refuse)).rejects.toThrow(RangeError);
        expect(await store.documents.get(collection, "counter")).toEqual({ count: 20 });
        await store.documents.update(collection, "counter", () => null);
        expect(await store.documents.get(collection, "counter")).toBeNull();
        await store.documents.update(collection, "counter", () => null);
      });

      test("expire", async () => {
        const collection = newId("collection");
        await store.documents.put(collection, "token", "old", now + 100);
        await store.documents.put(collection, "key", "stays");
        await store.documents.update(collection, "token", (document) => `${document}er`);
        expect(await store.documents.get(collection, "token")).toBe("older");
        expect(await store.documents.insert(collection, "token", "new")).toBe(false);
        now += 100;
        expect(await store.documents.get(collection, "token")).toBeNull();
        expect(await store.documents.list(collection)).toEqual([{ id: "key", document: "stays" }]);
        expect(await store.documents.delete(collection, "token")).toBe(false);
        await store.documents.put(collection, "token", "old", now - 1);
        let seen: unknown = "not asked";
        await store.documents.update(collection, "token", (document) => {
          seen = document;
          return undefined;
        });
        expect(seen).toBeNull();
        expect(await store.documents.insert(collection, "token", "new", now + 50)).toBe(true);
        expect(await store.documents.get(collection, "token")).toBe("new");
      });

      test("are removed within a minute of use after they expired, also after the clock was set back", async () => {
        const { put, get } = store.documents;
        const collection = newId("collection");
        for (const ahead of [0, 400 * 86_400_000]) {
          now += ahead;
          await put(collection, "other", {});
          now -= ahead;
          await put(collection, "expiring", {}, now + 1000);
          now += 60_000;
          await put(collection, "other", {});
          // Reading it in time would remove it too: only a clock before its expiry shows whether it is still there.
          now -= 60_000;
          expect(await get(collection, "expiring")).toBeNull();
          now += 60_000;
        }
      });
    });

    test("any text can be a name: odd, long, empty", async () => {
      const names = fc.oneof(
        fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)), maxLength: 20 }),
        fc.constantFrom(
          "",
          "__proto__",
          "\0",
          "a\0b",
          "\ud800",
          "\\u0000",
          "\\",
          "ä\u0308",
          "x".repeat(5_000),
          "DROP TABLE; --'\"",
        ),
      );
      await fc.assert(
        fc.asyncProperty(names, names, names, async (scopeName, externalId, tag) => {
          const scope = scopeName + newScope();
          const created = (await store.profiles.create(profileOf(scope, externalId, { tag })))!;
          expect(await store.profiles.find(scope, "person", externalId, tag)).toEqual(created);
          expect(await store.profiles.create(profileOf(scope, externalId, { tag }))).toBeNull();
          const other = (await store.profiles.create(profileOf(scope, `${externalId}'`, { tag })))!;
          expect(other.owner.id).not.toBe(created.owner.id);
          expect(await store.profiles.get(scope, externalId)).toBeNull();
          await store.documents.put(scope, externalId, { tag });
          expect(await store.documents.list(scope)).toEqual([{ id: externalId, document: { tag } }]);
        }),
        { numRuns: 15 },
      );
    });

    test("embeddings of any finite values are returned bit for bit", async () => {
      const scope = newScope();
      const { id: sessionId } = await startSession(store, scope);
      const values = fc.float32Array({ noNaN: true, maxLength: 300, minLength: 1 });
      await fc.assert(
        fc.asyncProperty(values, values, async (whole, window) => {
          const windows = [{ embedding: window, speechSeconds: 1 / 3, startSeconds: 0, endSeconds: 1e-9 }];
          const processed = processedOf(scope, sessionId, 1, { voice: { windows, embedding: whole } });
          await store.processed.add(processed);
          const read = (await store.processed.get(scope, processed.id))!;
          expect(new Uint32Array(read.voice.embedding!.buffer)).toEqual(new Uint32Array(whole.slice().buffer));
          expect(read).toEqual(processed);
        }),
        { numRuns: 15 },
      );
    });

    test(
      "calls that are in progress when it closes are answered, or refused as closed",
      async () => {
        const ours = await open({ now: () => now });
        const calls = Array.from({ length: 20 }, (_, i) => ours.documents.put("collection", `id ${i}`, {}));
        const closing = ours.close();
        for (const outcome of await Promise.allSettled(calls))
          if (outcome.status === "rejected")
            expect(outcome.reason).toMatchObject({ name: "StoreError", code: "closed" });
        await closing;
      },
      OPENING_TIMEOUT_MS,
    );

    test(
      "refuses everything once it is closed",
      async () => {
        const ours = await open({ now: () => now });
        const scope = newScope();
        await ours.profiles.create(profileOf(scope, "alice"));
        await ours.close();
        await ours.close();
        const closed = { name: "StoreError", code: "closed" };
        await expect(ours.profiles.get(scope, "id")).rejects.toMatchObject(closed);
        await expect(ours.documents.get("a", "b")).rejects.toMatchObject(closed);
        await expect(ours.jobs.work(async () => {})).rejects.toMatchObject(closed);
        await expect(ours.profiles.prints(scope, "person")[Symbol.asyncIterator]().next()).rejects.toMatchObject(
          closed,
        );
      },
      OPENING_TIMEOUT_MS,
    );
  });
}
