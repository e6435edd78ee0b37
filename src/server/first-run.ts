import type { Documents } from "../token/documents.js";
import type { TokenService } from "../token/service.js";
import { generatePassword } from "../token/users.js";

/** Shown once: the store has only a hash of the secret. */
export interface FirstApplication {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly scope: string;
}

/** Also shown once. */
export interface FirstOwner {
  readonly name: string;
  readonly password: string;
}

/** The biometric scope of the first application. */
export const FIRST_SCOPE = "default";

/** When a first start began, and whether it finished. If it was killed, nobody has seen its secrets. */
interface Begun {
  readonly at: number;
  readonly done?: boolean;
}

const RUN = "first-run";
const OWNER = "first-owner";

/**
 * Whether this process should do the first start: nobody has begun it, or the process that began it was killed. When
 * replicas start together, one does it; one that began less than `abandonedAfterMs` ago is given time.
 */
async function begins(documents: Documents, id: string, abandonedAfterMs: number): Promise<boolean> {
  if (await documents.insert("server", id, { at: Date.now(), done: false } satisfies Begun)) return true;
  let isOurs = false;
  await documents.update("server", id, (document) => {
    const { at, done } = document as Begun;
    // A clock that was set back meanwhile must not keep us waiting.
    isOurs = done === false && Math.abs(Date.now() - at) >= abandonedAfterMs;
    return isOurs ? { at: Date.now(), done: false } : undefined;
  });
  return isOurs;
}

/** Called after everything else of a start: from now on the caller is responsible for showing the secrets. */
export async function endFirstRun(documents: Documents): Promise<void> {
  for (const id of [RUN, OWNER])
    await documents.update("server", id, (document) => {
      const begun = document as Begun | null;
      return begun?.done === false ? { ...begun, done: true } : undefined;
    });
}

const NAME = "vivavoce";

/**
 * Creates an application whose client may use every runtime service, if the store has never been used. `null`
 * afterwards.
 */
export async function firstRun(
  service: TokenService,
  documents: Documents,
  abandonedAfterMs = 0,
): Promise<FirstApplication | null> {
  const known = await service.applications.list();
  if (known.length > 0 && (await documents.get("server", RUN)) === null) return null;
  if (!(await begins(documents, RUN, abandonedAfterMs))) return null;
  const application =
    known.find(({ name }) => name === NAME) ??
    (await service.applications.create({
      name: NAME,
      environment: "production",
      geography: "local",
      gkScopes: [FIRST_SCOPE],
    }));
  const client = application.clients[0]!;
  const clientSecret = await service.applications.regenerateSecret(application.id, client.id);
  return { clientId: client.id, clientSecret, scope: FIRST_SCOPE };
}

/** Creates an owner who can sign in to the operator view, if the store never had a user. `null` afterwards. */
export async function firstOwner(
  service: TokenService,
  documents: Documents,
  abandonedAfterMs = 0,
): Promise<FirstOwner | null> {
  const known = await service.users.list();
  if (known.length > 0 && (await documents.get("server", OWNER)) === null) return null;
  if (!(await begins(documents, OWNER, abandonedAfterMs))) return null;
  const password = generatePassword(service.random);
  const name = "owner";
  if (known.some((user) => user.name === name)) await service.users.change(name, { password });
  else await service.users.create({ name, role: "owner", password });
  return { name, password };
}

/**
 * Lines for a POSIX shell that get a token, enroll a voice and verify it, as printed after the first start. Each paste
 * enrolls a new person, so the lines work more than once and do not touch an "ada" enrolled by the command line.
 */
export function curlLines(url: string, { clientId, clientSecret, scope }: FirstApplication, voices = "voices"): string {
  const escaped = clientId.replaceAll(":", "%3A");
  return `npx vivavoce demo --wav ${voices}
URL=${url}
TOKEN=$(curl -sS $URL/oauth2/token -u '${escaped}:${clientSecret}' -d grant_type=client_credentials -d scope=bio | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')
call() { curl -sS "$URL$1" -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' -d "{$CONTEXT$2}"; }
send() { curl -sS "$URL/v1/audios?context.gk_scope_id.value=${scope}&context.gk_engagement_id.value=$E&context.gk_session_id.value=$S" -H "authorization: Bearer $TOKEN" -H 'content-type: audio/wav' --data-binary "@$1"; }
id() { sed 's/.*"'$1'":{"value":"\\([^"]*\\)".*/\\1/'; }
show() { grep -o '"\\(enrollStatus\\|trainStatus\\|decision\\|reason\\|message\\)":"[^"]*"' | tr '\\n' ' '; echo; }
CONTEXT='"context":{"gk_scope_id":{"value":"${scope}"}}'
STARTED=$(call /v1/sessions/start ',"session_type":"SESSION_TYPE_IVR"')
S=$(echo "$STARTED" | id gkSessionId); E=$(echo "$STARTED" | id gkEngagementId)
CONTEXT='"context":{"gk_scope_id":{"value":"${scope}"},"gk_engagement_id":{"value":"'$E'"},"gk_session_id":{"value":"'$S'"},"configset_id":"ivr-text-dependent"}'
P=$(call /v1/voiceprints/profiles ',"person_id":"ada-'$S'"' | id gkVoiceprintProfileId)
for n in 1 2 3; do
  M=$(send ${voices}/ada-$n.wav | id gkMediaSegmentId)
  A=$(call /v1/audios/process ',"gk_media_segment_id":{"value":"'$M'"},"is_for_enrollment":true' | id gkProcessedAudioId)
  call /v1/voiceprints/$P/enrollment ',"gk_processed_audio_id":{"value":"'$A'"}' | show
done
call /v1/voiceprints/$P/training | show
for who in ada-4 bob-1; do
  M=$(send ${voices}/$who.wav | id gkMediaSegmentId)
  call /v1/voiceprints/$P/verification ',"gk_media_segment_id":{"value":"'$M'"}' | show
done`;
}
