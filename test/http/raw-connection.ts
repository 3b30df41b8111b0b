/** Bytes over a connection of their own, HTTP or not. */
import { connect } from "node:net";

/**
 * Sends bytes unchanged, in one write for each text, and then ends its side if `ends`; returns what the server sends until
 * `enough` or the end.
 */
export function exchange(
  port: number,
  bytes: string | readonly string[],
  enough: (got: string) => boolean,
  ends = false,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    let got = "";
    const done = (): void => {
      socket.destroy();
      resolve(got);
    };
    socket.setTimeout(15_000, () => reject(new Error(`no end after ${JSON.stringify(got)}`)));
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => {
      got += chunk.toString("latin1");
      if (enough(got)) done();
    });
    socket.on("error", done);
    socket.on("close", done);
    for (const part of [bytes].flat()) socket.write(part, "latin1");
    if (ends) socket.end();
  });
}

/** Connects, sends, and resets the connection without reading. */
export function sendAndReset(port: number, bytes: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", reject);
    socket.on("close", () => resolve());
    socket.write(bytes, () => socket.resetAndDestroy());
  });
}
