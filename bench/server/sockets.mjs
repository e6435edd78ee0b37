/**
 * HTTP/1.1 on keep-alive connections, only as much as a box's replies need: the load's callers share the cores with the box,
 * and in reality they would run on other machines.
 */
import net from "node:net";

const HEAD_END = Buffer.from("\r\n\r\n");
/** Node's server closes a connection that is idle for 5 s. */
const KEPT_MS = 3000;

export function socketSender(url, token) {
  const { host, hostname, port } = new URL(url);
  const idle = [];
  const open = new Set();

  function connect() {
    const socket = net.connect({ host: hostname, port: Number(port), noDelay: true });
    const connection = { socket, received: [], settle: null, idleSince: 0 };
    const fail = (error) => {
      open.delete(connection);
      connection.settle?.(error ?? new Error("the connection closed"));
    };
    socket.on("data", (chunk) => {
      connection.received.push(chunk);
      const answer = answerIn(connection.received);
      if (!answer) return;
      connection.received = [];
      connection.settle(null, answer);
    });
    socket.once("error", fail);
    socket.once("close", () => fail());
    open.add(connection);
    return connection;
  }

  function take() {
    const connection = idle.pop();
    if (!connection) return connect();
    if (performance.now() - connection.idleSince < KEPT_MS) return connection;
    // All below it have been idle for longer.
    for (const { socket } of [connection, ...idle.splice(0)]) socket.destroy();
    return connect();
  }

  return {
    send(method, path, type, body) {
      const connection = take();
      return new Promise((resolve, reject) => {
        connection.settle = (error, answer) => {
          connection.settle = null;
          if (error) return reject(error);
          connection.idleSince = performance.now();
          idle.push(connection);
          resolve(answer);
        };
        const about = body ? `content-type: ${type}\r\ncontent-length: ${body.length}\r\n` : "";
        const head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n${about}\r\n`;
        connection.socket.cork();
        connection.socket.write(head, "latin1");
        if (body) connection.socket.write(body);
        connection.socket.uncork();
      });
    },
    close() {
      for (const { socket } of open) socket.destroy();
    },
  };
}

/** The reply in these bytes; `null` until it is complete. */
function answerIn(received) {
  const bytes = received.length === 1 ? received[0] : Buffer.concat(received);
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd < 0) return null;
  const head = bytes.latin1Slice(0, headEnd);
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)[1]);
  const bodyAt = headEnd + HEAD_END.length;
  if (bytes.length < bodyAt + length) return null;
  return { status: Number(head.slice(9, 12)), body: JSON.parse(bytes.utf8Slice(bodyAt, bodyAt + length)) };
}
