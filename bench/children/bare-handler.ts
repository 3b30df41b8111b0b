/**
 * The baseline of the HTTP bench, in its own process: minimal uWebSockets.js that reads an order's body, parses it and
 * responds 202 with JSON of a given size. It checks nothing and stores nothing.
 */
import { loadUws } from "../../server/http/uws.ts";

const bytes = Number(process.argv[2]);
const uws = await loadUws();

function answer(body: ArrayBuffer): string {
  const { market_id } = JSON.parse(Buffer.from(body).toString()) as { market_id: number };
  const start = `{"code":0,"msg":"ok","data":{"market_id":${market_id},"rest":"`;
  return `${start}${PADDING.slice(start.length + 3)}"}}`;
}
const PADDING = "x".repeat(bytes);

const app = uws.App().post("/*", (res) => {
  res.onAborted(() => {});
  res.onData((chunk, isLast) => {
    // wrk and the bench's own client send an order in one piece.
    if (!isLast) return;
    const text = answer(chunk);
    res.cork(() => {
      res.writeStatus("202 Accepted").writeHeader("Content-Type", "application/json").end(text);
    });
  });
});
app.listen("127.0.0.1", 0, (socket) => {
  if (socket !== false) console.log(`port ${uws.us_socket_local_port(socket)}`);
});
