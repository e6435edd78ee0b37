/** Node's own servers with nothing before the work: the wait due to the client, the connection and Node alone. */
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";

const JSON_ANSWER = JSON.stringify({ status: { statusCode: "OK", message: "x".repeat(500) } });
/** A frame with an empty message, which is valid for every type. */
const GRPC_ANSWER = Buffer.alloc(5);

/** `work` gets the path and resolves when the request may be answered. */
export async function openBare(work) {
  const plain = http.createServer((request, response) => {
    request.resume();
    request.once("end", async () => {
      await work(request.url);
      response.writeHead(200, { "content-type": "application/json", "content-length": JSON_ANSWER.length });
      response.end(JSON_ANSWER);
    });
  });
  const grpc = http2.createServer();
  grpc.on("stream", (stream, headers) => {
    stream.resume();
    stream.once("end", async () => {
      await work(headers[":path"]);
      stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.respond({ ":status": 200, "content-type": "application/grpc+proto" }, { waitForTrailers: true });
      stream.end(GRPC_ANSWER);
    });
  });
  const urls = await Promise.all(
    [plain, grpc].map(async (server) => {
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      return `http://127.0.0.1:${server.address().port}`;
    }),
  );
  return { http: urls[0], grpc: urls[1] };
}
