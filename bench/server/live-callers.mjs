/**
 * The callers of the live bench, in a separate process. They share the cores with the box, so they do as little as possible: all frames are
 * prepared in advance; one timer sends what is due; the socket is written to without a library in between.
 */
import { once } from "node:events";
import { WebSocket } from "ws";

const PACKET_MS = 20;
/** Calls send their packets in different milliseconds, like real callers. */
const PHASES = PACKET_MS;

/** A client's binary frame of RFC 6455 with a mask of zeros: the payload is unchanged. */
function frame(payload) {
  const short = payload.length < 126;
  const head = Buffer.alloc((short ? 2 : 4) + 4);
  head[0] = 0x82;
  head[1] = 0x80 | (short ? payload.length : 126);
  if (!short) head.writeUInt16BE(payload.length, 2);
  return Buffer.concat([head, payload]);
}

const framesOf = (audio, packetBytes) =>
  Array.from({ length: Math.ceil(audio.length / packetBytes) }, (_, i) =>
    frame(audio.subarray(i * packetBytes, (i + 1) * packetBytes)),
  );

export async function openCall(url, token, start) {
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/live`, ["vivavoce.live.v1", `bearer.${token}`], {
    perMessageDeflate: false,
  });
  await once(socket, "open");
  const started = once(socket, "message");
  socket.send(JSON.stringify({ start }));
  await started;
  return socket;
}

/** Each of `calls` sends silence until it begins to speak. Resolves to the send time of each packet of speech and the replies. */
async function place({ url, token, packetBytes, recordings, calls }) {
  const silence = frame(Buffer.alloc(packetBytes));
  const spoken = recordings.map((audio) => framesOf(Buffer.from(audio, "base64"), packetBytes));
  const open = [];
  for (const { start, recording, silentPackets } of calls) {
    const socket = await openCall(url, token, start);
    const call = { socket, frames: spoken[recording], silentPackets, sentAt: [], result: null, isOver: false };
    socket.on("message", (data) => {
      const { result } = JSON.parse(data);
      if (result) call.result = { atMs: performance.now(), verify: result.verify };
    });
    call.over = once(socket, "close").then(() => {
      call.isOver = true;
    });
    open.push(call);
  }
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  let tick = 0;
  const timer = setInterval(() => {
    for (; tick <= performance.now() - startedAt; tick++) {
      for (let n = tick % PHASES; n < open.length; n += PHASES) send(open[n]);
    }
  }, 1);
  const send = (call) => {
    if (call.isOver || call.socket.readyState !== WebSocket.OPEN) return;
    const i = call.sentAt.length - call.silentPackets;
    if (i === call.frames.length) call.socket.send('{"end":{}}');
    if (i < call.frames.length) call.socket._socket.write(i < 0 ? silence : call.frames[i]);
    call.sentAt.push(performance.now());
  };
  await Promise.all(open.map(({ over }) => over));
  clearInterval(timer);
  const { user, system } = process.cpuUsage(cpuBefore);
  return {
    cpuSeconds: (user + system) / 1e6,
    seconds: (performance.now() - startedAt) / 1000,
    calls: open.map(({ sentAt, result }) => ({ result, lateMs: result && lateMs(sentAt, result) })),
  };
}

/** Time after the packet with the last sample that was needed: it completes the speech. */
function lateMs(sentAt, { atMs, verify }) {
  const packet = Math.ceil((Number.parseFloat(verify.audioDetails.grossAudio) * 1000) / PACKET_MS) - 1;
  return atMs - sentAt[Math.min(packet, sentAt.length - 1)];
}

if (process.send) {
  process.once("message", async (asked) => {
    process.send(await place(asked));
    process.disconnect();
  });
}
