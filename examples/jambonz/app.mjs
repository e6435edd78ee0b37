// A jambonz application: the box listens to the caller while the call goes on.
// BOX=wss://voice.example.com/telephony/jambonz BOX_USER=pbx BOX_PASSWORD=… node examples/jambonz/app.mjs
import { createServer } from "node:http";

const { BOX, BOX_USER, BOX_PASSWORD, PORT = "3000" } = process.env;
if (!BOX || !BOX_USER || !BOX_PASSWORD) throw new Error("set BOX, BOX_USER and BOX_PASSWORD");

const verbs = [
  {
    verb: "config",
    listen: {
      enable: true,
      url: BOX,
      wsAuth: { username: BOX_USER, password: BOX_PASSWORD },
      mixType: "mono",
      sampleRate: 8000,
      passDtmf: true,
    },
  },
  { verb: "say", text: "Welcome. Please tell us how we can help." },
  { verb: "pause", length: 30 },
];

createServer((_, response) => {
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(verbs));
}).listen(Number(PORT), () => console.log(`listening on ${PORT}`));
