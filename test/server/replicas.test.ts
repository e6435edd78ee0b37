import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rateHz, take as sound } from "../processor/fixture-engine.js";
import { type PostgresServer, startPostgres } from "../store/postgres-server.js";
import { wav } from "../voice.js";
import { type ContractClient, type Json, overGrpc, overHttp } from "./contract-client.js";
import { endToEnd } from "./end-to-end.js";
import { enroll, openSession, type Takes } from "./workflows.js";

const takes: Takes = (speaker, take) => wav(sound(speaker, 3 + take / 10), rateHz);

interface Replica {
  readonly url: string;
  readonly application: { clientId: string; clientSecret: string } | null;
  readonly process: ChildProcess;
  readonly ended: Promise<number | null>;
}

let postgres: PostgresServer;
let folder: string;
let config: Json;
let replicas: Replica[];
let token: string;

async function start(): Promise<Replica> {
  const script = new URL("./replica.mjs", import.meta.url).pathname;
  const child = spawn(process.execPath, [script, JSON.stringify(config)], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const line = await Promise.race([
    new Promise<string>((resolve) => createInterface(child.stdout!).once("line", resolve)),
    ended.then((code) => Promise.reject(new Error(`the replica ended with ${code}`))),
  ]);
  return { ...(JSON.parse(line) as Pick<Replica, "url" | "application">), process: child, ended };
}

beforeAll(async () => {
  postgres = await startPostgres();
  folder = await mkdtemp(join(tmpdir(), "vivavoce-replicas-"));
  const masterKeyFile = join(folder, "master.key");
  await writeFile(masterKeyFile, randomBytes(32).toString("hex"));
  config = {
    store: await postgres.createDatabase(),
    seal: { keys: await postgres.createDatabase(), masterKeyFile },
    publicUrl: "http://voice.example.com",
  };
  replicas = await Promise.all([start(), start()]);
  const first = replicas.map(({ application }) => application).filter((one) => one !== null);
  expect(first, "of two replicas that start together one makes the first application").toHaveLength(1);
  const { clientId, clientSecret } = first[0]!;
  const response = await fetch(`${replicas[0]!.url}/oauth2/token`, {
    method: "POST",
    headers: { authorization: `Basic ${btoa(`${encodeURIComponent(clientId)}:${clientSecret}`)}` },
    body: new URLSearchParams({ grant_type: "client_credentials", scope: "bio" }),
  });
  token = ((await response.json()) as { access_token: string }).access_token;
}, 120_000);

afterAll(async () => {
  for (const replica of replicas ?? []) replica.process.kill("SIGTERM");
  await Promise.all((replicas ?? []).map(({ ended }) => ended));
  await postgres?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Every call goes to the next replica. */
function spread(clients: readonly ContractClient[]): ContractClient {
  let next = 0;
  const one = () => clients[next++ % clients.length]!;
  return {
    wrapsScalars: clients[0]!.wrapsScalars,
    call: (operation, request) => one().call(operation, request),
    upload: (...args) => one().upload(...args),
    close: () => {
      for (const client of clients) client.close();
    },
  };
}

describe.each(["gRPC", "HTTP"])(
  "two replicas pass what one box does, with the calls spread over them, over %s",
  (protocol) => {
    let client: ContractClient;
    beforeAll(() => {
      const over = (url: string) =>
        protocol === "gRPC"
          ? overGrpc(url, () => token)
          : overHttp(
              () => url,
              () => token,
            );
      client = spread(replicas.map(({ url }) => over(url)));
    });
    afterAll(() => client.close());

    endToEnd(() => client, takes, protocol);
  },
);

describe("two replicas on one PostgreSQL", () => {
  it("see each other's voiceprints at once in a group", async () => {
    const [a, b] = replicas.map(({ url }) =>
      overHttp(
        () => url,
        () => token,
      ),
    ) as [ContractClient, ContractClient];
    const profile = await enroll(a, takes, "grace", 400);
    const context = await openSession(b);
    const { gk_group_id } = await b.call("CreateGroup", {
      context,
      gk_voiceprint_profile_ids: { unique_ids: [{ value: profile }] },
    });
    const { gk_media_segment_id } = await a.upload(context, takes(400, 4));
    const { result } = await b.call("Identify", { context, gk_media_segment_id, group: { unique_id: gk_group_id } });
    expect(result).toMatchObject({
      decision: "DECISION_AUTHENTIC",
      voiceprint_details: { gk_voiceprint_profile_id: { value: profile } },
    });
    // Retrained on one replica, erased on the other: both see it.
    const again = await enroll(b, takes, "hopper", 500);
    const before = await openSession(a);
    await a.call("DeleteVoiceprintProfile", { context: before, gk_voiceprint_profile_id: { value: again } });
    await expect(
      b.call("GetEnrollStatus", { context: await openSession(b), gk_voiceprint_profile_id: { value: again } }),
    ).rejects.toMatchObject({ statusCode: "NOT_FOUND" });
  });

  it("lose no acknowledged write when one is killed during calls", async () => {
    const doomed = await start();
    const client = overHttp(
      () => doomed.url,
      () => token,
    );
    const survivor = overHttp(
      () => replicas[1]!.url,
      () => token,
    );
    const context = await openSession(client);
    const acknowledged: { profile: string; segments: number }[] = [];
    const enrollers = Array.from({ length: 6 }, async (_, i) => {
      for (let round = 0; ; round++) {
        const { gk_voiceprint_profile_id } = await client.call("CreateVoiceprintProfile", {
          context,
          person_id: `killed ${i} ${round}`,
        });
        const entry = { profile: gk_voiceprint_profile_id.value as string, segments: 0 };
        acknowledged.push(entry);
        for (let take = 1; take <= 3; take++) {
          const { gk_media_segment_id } = await client.upload(context, takes(600 + i, take));
          const { result } = await client.call("ProcessAudio", {
            context,
            gk_media_segment_id,
            is_for_enrollment: true,
          });
          const added = await client.call("Enroll", {
            context,
            gk_voiceprint_profile_id,
            gk_processed_audio_id: result.gk_processed_audio_id,
          });
          if (added.result.enrolled === true) entry.segments++;
        }
      }
    });
    const outcomes = Promise.allSettled(enrollers);
    while (acknowledged.reduce((sum, { segments }) => sum + segments, 0) < 12)
      await new Promise((wake) => setTimeout(wake, 20));
    doomed.process.kill("SIGKILL");
    await doomed.ended;
    expect((await outcomes).every(({ status }) => status === "rejected")).toBe(true);

    const { gk_job_id } = await survivor.call("StartVoiceprintProfilesStatusJob", {
      context,
      gk_voiceprint_profile_ids: { unique_ids: acknowledged.map(({ profile }) => ({ value: profile })) },
    });
    let job: Json;
    do {
      await new Promise((wake) => setTimeout(wake, 100));
      job = await survivor.call("GetVoiceprintProfilesStatusJob", { context, gk_job_id });
    } while (/PENDING|STARTED/.test(job.state));
    const kept = new Map<string, number>(
      job.profiles.map((one: Json) => [one.gk_voiceprint_profile_id.value, one.total_segments ?? 0]),
    );
    for (const { profile, segments } of acknowledged) {
      expect(kept.has(profile)).toBe(true);
      // A write that was not acknowledged may be there; an acknowledged one must be.
      expect(kept.get(profile)).toBeGreaterThanOrEqual(segments);
    }
    // A session of the killed replica continues on the other.
    const whole = acknowledged.find(({ segments }) => segments === 3);
    if (whole) {
      const trained = await survivor.call("Train", { context, gk_voiceprint_profile_id: { value: whole.profile } });
      expect(trained.result.train_status).toBe("TRAIN_STATUS_TRAINED");
    }
  });

  it("stop gracefully", async () => {
    const extra = await start();
    extra.process.kill("SIGTERM");
    expect(await extra.ended).toBe(0);
  });
});
