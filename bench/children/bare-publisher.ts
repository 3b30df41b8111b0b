/**
 * The baseline of the sockets bench's fan-out, in its own process: minimal uWebSockets.js that publishes recorded
 * messages to all connections, one per turn of the event loop, as fast as the sockets accept them.
 */
import type { WebSocket } from "uWebSockets.js";
import { readFileSync } from "node:fs";
import { loadUws } from "../../server/http/uws.ts";

/** More than this before one of them, and the next message waits. */
const MAX_BUFFERED_BYTES = 256 * 1024;
const messages = JSON.parse(readFileSync(process.argv[2]!, "utf8")) as string[];
const crowd = Number(process.argv[3]);
const uws = await loadUws();
const sockets: WebSocket<unknown>[] = [];
let sent = 0;

const app = uws.App().ws("/*", {
  maxBackpressure: 64 * MAX_BUFFERED_BYTES,
  open(socket) {
    socket.subscribe("all");
    if (sockets.push(socket) === crowd) publish();
  },
  close: () => process.exit(0),
});

function publish(): void {
  if (sockets[sent % sockets.length]!.getBufferedAmount() > MAX_BUFFERED_BYTES) {
    setTimeout(publish, 1);
    return;
  }
  app.publish("all", messages[sent++ % messages.length]!, false);
  setImmediate(publish);
}

app.listen("127.0.0.1", 0, (socket) => {
  if (socket !== false) console.log(`port ${uws.us_socket_local_port(socket)}`);
});
