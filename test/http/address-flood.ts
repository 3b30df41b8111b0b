/** A flood of requests from many IP addresses, over one connection of a trusted proxy. */
import { connect, type Socket as NetSocket } from "node:net";
import { expect } from "vitest";
import { API_BASE } from "../support/client.ts";
import type { TestServer } from "../support/server.ts";

/**
 * Requests each path once from each of `addresses` /64 networks. Sends a hundred requests and reads their responses, so that
 * the server reads each lot in one piece; if the server closes the connection meanwhile, sends another lot instead.
 */
export async function flood(
  server: TestServer,
  prefix: string,
  paths: readonly string[],
  addresses: number,
): Promise<void> {
  const perLot = 100 / paths.length;
  const lots = addresses / perLot;
  let socket = connect(server.port, "127.0.0.1");
  for (let lot = 0, done = 0; done < lots; lot++) {
    let requests = "";
    for (let at = lot * perLot; at < (lot + 1) * perLot; at++) {
      const from = `${prefix}:${at.toString(16)}::1`;
      for (const path of paths) {
        requests += `GET ${API_BASE}${path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${from}\r\n\r\n`;
      }
    }
    if (await sendLot(socket, requests, 100)) done++;
    else socket = connect(server.port, "127.0.0.1");
    expect(lot).toBeLessThan(2 * lots);
  }
  socket.destroy();
}

/** Sends the requests; resolves with true once each has a response, as the first of its address, and with false if the peer closes. */
function sendLot(socket: NetSocket, requests: string, expected: number): Promise<boolean> {
  return new Promise((resolve) => {
    let answers = "";
    const end = (all: boolean): void => {
      socket.removeAllListeners();
      socket.on("error", () => {});
      if (!all) socket.destroy();
      resolve(all);
    };
    socket.setEncoding("latin1");
    socket.on("data", (more: string) => {
      answers += more;
      if (answers.split("RateLimit-Remaining: 99\r\n").length - 1 >= expected) end(true);
    });
    socket.on("close", () => end(false));
    socket.on("error", () => end(false));
    socket.write(requests);
  });
}
