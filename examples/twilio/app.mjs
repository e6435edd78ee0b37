// Answers a call with TwiML that streams it to the box, and reads the webhook that the box sends when it has decided.
// TWILIO_STREAM=wss://voice.example.com/telephony/support WEBHOOK_SECRET=… node examples/twilio/app.mjs
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";

const { TWILIO_STREAM, WEBHOOK_SECRET, PORT = "3000" } = process.env;
if (!TWILIO_STREAM || !WEBHOOK_SECRET) throw new Error("set TWILIO_STREAM and WEBHOOK_SECRET");

const escaped = (text) => text.replace(/[<>&"']/g, (c) => `&#${c.charCodeAt(0)};`);

const twiml = (from) => `<?xml version="1.0" encoding="UTF-8"?>
<Response>
  <Start>
    <Stream url="${escaped(TWILIO_STREAM)}"><Parameter name="from" value="${escaped(from)}"/></Stream>
  </Start>
  <Say>Welcome. Please tell us how we can help.</Say>
  <Pause length="30"/>
</Response>`;

function isSigned(header, body) {
  const [, seconds, sent] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(header ?? "") ?? [];
  if (!seconds || Math.abs(Date.now() / 1000 - Number(seconds)) > 300) return false;
  const due = createHmac("sha256", WEBHOOK_SECRET).update(`${seconds}.${body}`).digest();
  return timingSafeEqual(Buffer.from(sent, "hex"), due);
}

createServer(async (request, response) => {
  const body = await text(request);
  if (request.url === "/voice") {
    response.setHeader("content-type", "text/xml");
    return response.end(twiml(new URLSearchParams(body).get("From") ?? ""));
  }
  if (request.url === "/decided" && isSigned(request.headers["x-vivavoce-signature"], body)) {
    const { call, decision, reason } = JSON.parse(body);
    // A call that failed has no decision, but a reason.
    console.log(`call ${call.callId} of ${call.from}: ${decision ?? reason}`);
    return response.end();
  }
  response.statusCode = 404;
  response.end();
}).listen(Number(PORT), () => console.log(`listening on ${PORT}: /voice for Twilio, /decided for the box`));
