/** The easy door while others use the same store, or when the engine fails. Uses the fixture engine, which can fail on demand. */
import { expect, test, vi } from "vitest";
import { StatusCode, StatusError } from "../../src/contract/index.js";
import { localAccess } from "../../src/local-access.js";
import { Voiceprints, type VoiceprintsProgress } from "../../src/voiceprints.js";
import { rateHz, take } from "./fixture-engine.js";
import { openWorld, refusal, scopeA } from "./world.js";

async function openDoor() {
  const world = await openWorld();
  const settings = { scope: scopeA, configset: "ivr-text-dependent" };
  const local = localAccess(world.processor);
  return { world, voice: new Voiceprints(world.processor, settings, local) };
}

test("two erasures at once: one erases, the other finds nothing, and no print stays", async () => {
  const { voice } = await openDoor();
  const recordings = [3, 3.1, 3.2].map((seconds) => ({ samples: take(7, seconds), rateHz }));
  for (const tag of ["", "mobile"]) await voice.enroll("alice", recordings, { tag });
  const both = await Promise.all([voice.erase("alice"), voice.erase("alice")]);
  expect(both).toContain(true);
  expect(await voice.people()).toEqual([]);
});

test("Identify skips a person who is erased while it runs; if that person was named, it reports the missing profile", async () => {
  const { world, voice } = await openDoor();
  const recordings = [3, 3.1, 3.2];
  const said = (speaker: number) => recordings.map((seconds) => ({ samples: take(speaker, seconds), rateHz }));
  const enrollAll = async () => {
    for (const [name, speaker] of Object.entries({ alice: 7, bob: 9 })) await voice.enroll(name, said(speaker));
    for (const [name, speaker] of Object.entries({ mallory: 11, trudy: 13 }))
      await voice.enrollFraudster(name, said(speaker));
  };
  await enrollAll();
  const { add } = world.store.media;
  const eraseMeanwhile = () => {
    world.store.media.add = async (segment) => {
      world.store.media.add = add;
      await voice.erase("bob");
      await voice.eraseFraudster("trudy");
      return add(segment);
    };
  };
  const call = { samples: take(7, 4), rateHz };
  eraseMeanwhile();
  const found = await voice.identify(call);
  expect(found.person).toBe("alice");
  expect(found.candidates.map(({ name }) => name)).toEqual(["alice"]);
  await enrollAll();
  eraseMeanwhile();
  expect((await voice.watch(call)).likeliestFraudster).toBe("mallory");
  await enrollAll();
  eraseMeanwhile();
  expect(await refusal(voice.identify(call, ["alice", "bob"]))).toMatchObject({ code: "NOT_FOUND" });
});

test("Identify is not repeated after an error that has nothing to do with an erased person", async () => {
  const { world, voice } = await openDoor();
  await voice.enroll(
    "alice",
    [3, 3.1, 3.2].map((seconds) => ({ samples: take(7, seconds), rateHz })),
  );
  for (const code of ["BUSY", "NOT_FOUND"] as const) {
    const failure = new StatusError({ statusCode: StatusCode[code], message: "not now" });
    const identify = vi.spyOn(world.processor, "identify").mockRejectedValue(failure);
    expect(await refusal(voice.identify({ samples: take(7, 4), rateHz }))).toMatchObject({ code });
    expect(identify).toHaveBeenCalledOnce();
    identify.mockRestore();
  }
});

test("sessions do not contain the name of an erased person", async () => {
  const { world, voice } = await openDoor();
  const opened: unknown[] = [];
  const { create } = world.store.sessions;
  world.store.sessions.create = (session) => {
    opened.push(session);
    return create(session);
  };
  await voice.enroll(
    "alice",
    [3, 3.1, 3.2].map((seconds) => ({ samples: take(7, seconds), rateHz })),
  );
  await voice.verify("alice", { samples: take(7, 4), rateHz });
  await (await voice.listen({ persons: ["alice"] }, rateHz)).close();
  expect(opened).toHaveLength(3);
  expect(JSON.stringify(opened)).not.toContain("alice");
});

test("a live check that fails ends its session", async () => {
  const { world, voice } = await openDoor();
  await voice.enroll(
    "alice",
    [3, 3.1, 3.2].map((seconds) => ({ samples: take(7, seconds), rateHz })),
  );
  const stopped: string[] = [];
  const { stop } = world.store.sessions;
  world.store.sessions.stop = (scopeId, id, at) => {
    stopped.push(id);
    return stop(scopeId, id, at);
  };
  const pushed = await voice.listen({ persons: ["alice"] }, rateHz);
  const finished = await voice.listen({ persons: ["alice"] }, rateHz);
  await finished.push(take(7, 1));
  world.engine.behavior.before = () => {
    throw new Error("out of order");
  };
  expect(await refusal(pushed.push(take(7, 3)))).toMatchObject({ code: "INTERNAL_ERROR" });
  expect(await refusal(finished.finish())).toMatchObject({ code: "INTERNAL_ERROR" });
  expect(stopped).toHaveLength(2);
  await pushed.close();
  expect(stopped).toHaveLength(2);
});

/** Ids of the engagements that were stopped. */
function stopsIn({ processor }: Awaited<ReturnType<typeof openDoor>>["world"]): (string | undefined)[] {
  const stopped: (string | undefined)[] = [];
  const stop = processor.stopEngagement.bind(processor);
  vi.spyOn(processor, "stopEngagement").mockImplementation((request, options) => {
    stopped.push(request.context?.gkEngagementId?.value);
    return stop(request, options);
  });
  return stopped;
}

test("follow ends its session if the source of the audio throws, and reports that error", async () => {
  const { world, voice } = await openDoor();
  await voice.enroll(
    "alice",
    [3, 3.1, 3.2].map((seconds) => ({ samples: take(7, seconds), rateHz })),
  );
  const stopped = stopsIn(world);
  const listener = await voice.listen({ persons: ["alice"] }, rateHz, { ignoreCheckpoints: true });
  async function* microphone() {
    yield take(7, 1);
    throw new Error("unplugged");
  }
  await expect(listener.follow(microphone())).rejects.toThrow("unplugged");
  expect(stopped).toHaveLength(1);
  const second = await voice.listen({ persons: ["alice"] }, rateHz);
  expect(await refusal(second.follow(["no audio" as never]))).toMatchObject({ code: "INVALID_REQUEST" });
  expect(stopped).toHaveLength(2);
});

test("if a call fails and its session cannot be stopped either, the first error is reported", async () => {
  const { world, voice } = await openDoor();
  await voice.enroll(
    "alice",
    [3, 3.1, 3.2].map((seconds) => ({ samples: take(7, seconds), rateHz })),
  );
  vi.spyOn(world.processor, "stopEngagement").mockRejectedValue(new Error("the store is gone"));
  const call = { samples: take(7, 4), rateHz };
  expect(await refusal(voice.verify("nobody", call))).toMatchObject({ code: "NOT_FOUND" });
  expect(await refusal(voice.listen({ persons: ["nobody"] }, rateHz))).toMatchObject({ code: "NOT_FOUND" });
  const listener = await voice.listen({ persons: ["alice"] }, rateHz);
  world.engine.behavior.before = () => {
    throw new Error("the engine failed");
  };
  expect(await refusal(listener.push(take(7, 3)))).toMatchObject({ code: "INTERNAL_ERROR" });
  world.engine.behavior.before = () => {};
  // A session that cannot be stopped after a success is an error: its audio may still be stored.
  await expect(voice.verify("alice", call)).rejects.toThrow("the store is gone");
});

test("an error of onProgress ends the call, which rejects with it and leaves nothing of the call", async () => {
  const { world, voice } = await openDoor();
  const recordings = [3, 3.1, 3.2].map((seconds) => ({ samples: take(7, seconds), rateHz }));
  await voice.enroll("alice", recordings);
  const checked = vi.spyOn(world.store.sessions, "addCheck");
  const stopped = vi.spyOn(world.processor, "stopEngagement");
  const failure = new Error("the callback failed");
  const onProgress = vi.fn((_: VoiceprintsProgress): void => {
    throw failure;
  });
  // Checkpoints are read as a stream, without them in one go.
  for (const ignoreCheckpoints of [true, false])
    await expect(
      voice.verify("alice", { samples: take(7, 6), rateHz }, { onProgress, ignoreCheckpoints }),
    ).rejects.toBe(failure);
  await expect(voice.enroll("bob", recordings, { onProgress })).rejects.toBe(failure);
  // Each call ended with its first report.
  expect(onProgress).toHaveBeenCalledTimes(3);
  expect(stopped).toHaveBeenCalledTimes(3);
  expect(checked).not.toHaveBeenCalled();
  expect(await voice.people()).toEqual(["alice"]);

  onProgress.mockImplementation(({ step }) => {
    if (step === "train") throw failure;
  });
  await expect(voice.enroll("bob", recordings, { onProgress })).rejects.toBe(failure);
  expect((await voice.verify("alice", { samples: take(7, 6), rateHz })).decision).toBe("AUTHENTIC");
});

test("if an import fails and what it had imported cannot be deleted either, the first error is reported", async () => {
  const { world, voice } = await openDoor();
  const recordings = [3, 3.1, 3.2].map((seconds) => ({ samples: take(7, seconds), rateHz }));
  for (const tag of ["", "mobile"]) await voice.enroll("alice", recordings, { tag });
  const sealed = await voice.export("alice", { passphrase: "correct horse battery" });
  // Only the second print is taken by another person.
  await voice.enroll("bob", recordings, { tag: "mobile" });
  vi.spyOn(world.processor, "deleteVoiceprintProfile").mockRejectedValue(new Error("the store is gone"));
  const imported = voice.import(sealed, { passphrase: "correct horse battery", name: "bob" });
  expect(await refusal(imported)).toMatchObject({ code: "ALREADY_EXISTS" });
});

test("a live enrollment that is cancelled before it begins, or is not available, leaves no profile", async () => {
  const { world, voice } = await openDoor();
  const cancelled = voice.listenToEnroll("alice", rateHz, { signal: AbortSignal.abort("changed my mind") });
  expect(await refusal(cancelled)).toMatchObject({ code: "CANCELLED" });
  const withoutLive = new Voiceprints(world.processor, { scope: scopeA, configset: "ivr-text-dependent" });
  expect(await refusal(withoutLive.listenToEnroll("alice", rateHz))).toMatchObject({ code: "NOT_IMPLEMENTED" });
  expect(await voice.people()).toEqual([]);
});

test("a live enrollment with a sampling rate that is not supported is refused before it creates a profile", async () => {
  const { voice } = await openDoor();
  for (const rate of [999, 3999, 192_001, 8000.5, Number.NaN])
    expect(await refusal(voice.listenToEnroll("alice", rate))).toMatchObject({ fields: ["rate out_of_range"] });
  expect(await voice.people()).toEqual([]);
});

test("an enrollment creates the profile that another caller created, and erased again, at the same moment", async () => {
  const { world, voice } = await openDoor();
  const recordings = [3, 3.1, 3.2].map((seconds) => ({ samples: take(7, seconds), rateHz }));
  vi.spyOn(world.processor, "createVoiceprintProfile").mockRejectedValueOnce(
    new StatusError({ statusCode: StatusCode.ALREADY_EXISTS, message: "created, and erased before we look" }),
  );
  expect((await voice.enroll("alice", recordings)).trained).toBe(true);
  vi.spyOn(world.processor, "createVoiceprintProfile").mockRejectedValue(
    new StatusError({ statusCode: StatusCode.ALREADY_EXISTS, message: "not found, but it exists" }),
  );
  expect(await refusal(voice.enroll("bob", recordings))).toMatchObject({ code: "ALREADY_EXISTS" });
});

test("an enrollment reports the status of the print although its last recording could not be processed", async () => {
  const { world, voice } = await openDoor();
  const recordings = [3, 3.1, 3.2, 3.3].map((seconds) => ({ samples: take(7, seconds), rateHz }));
  let calls = 0;
  world.engine.behavior.before = () => {
    calls++;
    if (calls === recordings.length) throw new Error("out of order");
  };
  const { segments, enrollStatus } = await voice.enroll("alice", recordings);
  expect(segments.map(({ enrolled }) => enrolled)).toEqual([true, true, true, false]);
  expect(segments.at(-1)).toMatchObject({ reason: "INTERNAL_ERROR", validity: "INTERNAL_ERROR" });
  expect(enrollStatus).toBe("TRAIN_SUGGESTED");
});
