import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Recording } from "../audio/port.js";
import { type AddMediaSegmentRequest, type AddMediaSegmentResponseSchema, StatusCode } from "../contract/index.js";
import type { MediaSegment } from "../store/port.js";
import { assertRunning, assertStillRunning, configurationSetOf, sessionOf } from "./context.js";
import type { Dependencies, OperationOptions } from "./dependencies.js";
import { invalid, refusal } from "./failures.js";
import { uniqueId } from "./messages.js";
import { rawFormat } from "./recorded-audio.js";

/** Keeps audio for the other operations. `first` carries context and format, `rest` more of the bytes. */
export async function addMediaSegment(
  deps: Dependencies,
  first: AddMediaSegmentRequest,
  rest: AsyncIterable<Uint8Array>,
  options: OperationOptions,
): Promise<MessageInitShape<typeof AddMediaSegmentResponseSchema>> {
  const encoding = encodingOf(first.encoding);
  const session = await sessionOf(deps, first.context);
  if (first.context!.configsetId !== "") configurationSetOf(deps, first.context);
  assertRunning(session);
  const sent = await collect(deps, first.chunk, rest, options);
  const format = { encoding, rateHz: first.rate, channels: first.channels === 0 ? 1 : first.channels };
  const { audio, recording } = await readable(deps, sent, format, options);
  await assertStillRunning(deps, session);
  const id = deps.ids.next();
  await deps.store.media.add({
    id,
    scopeId: session.scopeId,
    sessionId: session.id,
    partOf: null,
    rateHz: recording.rateHz,
    channels: recording.channels,
    encoding,
    createdAt: deps.clock.now(),
    audio,
  });
  return { gkMediaSegmentId: uniqueId(id) };
}

function encodingOf(name: string): MediaSegment["encoding"] {
  if (name === "" || name === "wav") return "wav";
  if (name === "pcm16" || name === "alaw" || name === "mulaw") return name;
  throw invalid("encoding", "unknown", `encoding must be wav, pcm16, alaw or mulaw, got "${name}"`);
}

/** Rejects bytes that are not audio. Audio that fails to decode later is reported by the check that reads it. */
async function readable(
  deps: Dependencies,
  sent: Uint8Array,
  format: Pick<MediaSegment, "encoding" | "rateHz" | "channels">,
  { signal }: OperationOptions,
): Promise<{ audio: Uint8Array; recording: Recording }> {
  try {
    const bounds = { maxBytes: deps.limits.mediaBytes, ...(signal && { signal }) };
    const audio = format.encoding === "wav" ? await deps.toWav(sent, bounds) : sent;
    const recording = deps.readRecording(audio, rawFormat(format));
    if (recording.frames > 0) return { audio, recording };
  } catch (error) {
    signal?.throwIfAborted();
    // The operating system refused to start the decoder: that says nothing about the audio.
    if (!(error instanceof Error) || "syscall" in error) throw error;
    const code = "code" in error ? error.code : undefined;
    const field = code === "BAD_RATE" ? "rate" : code === "BAD_CHANNELS" ? "channels" : "chunk";
    throw invalid(field, "not_audio", error.message);
  }
  throw invalid("chunk", "empty", "the recording has no samples");
}

async function collect(
  deps: Dependencies,
  first: Uint8Array,
  rest: AsyncIterable<Uint8Array>,
  options: OperationOptions,
): Promise<Uint8Array> {
  if (first.length > deps.limits.mediaBytes) throw tooLarge(deps.limits.mediaBytes);
  let audio = first;
  let length = first.length;
  for await (const chunk of rest) {
    options.signal?.throwIfAborted();
    const end = length + chunk.length;
    if (end > deps.limits.mediaBytes) throw tooLarge(deps.limits.mediaBytes);
    // Chunks are joined as they arrive: a separate array for each one-byte chunk would take hundreds of bytes.
    if (end > audio.length) {
      const roomier = new Uint8Array(Math.max(end, 2 * length, LEAST_ROOM));
      roomier.set(audio.subarray(0, length));
      audio = roomier;
    }
    audio.set(chunk, length);
    length = end;
  }
  return audio.length === length ? audio : audio.slice(0, length);
}

const LEAST_ROOM = 65_536;

const tooLarge = (bytes: number) =>
  refusal(StatusCode.TOO_LARGE, "chunk", "too_large", `a media segment must have at most ${bytes} bytes`);
