/** Who holds the connections of a port, as the system says: over IPv4, IPv6, and IPv4 on a port of IPv6. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { countClients } from "../../server/http/address-census.ts";

async function listen(host: string): Promise<number> {
  const accepted: Socket[] = [];
  const server = createServer((socket) => accepted.push(socket)).listen(0, host);
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    for (const socket of accepted) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

async function open(port: number, host: string, localAddress: string, count: number): Promise<void> {
  const sockets = Array.from({ length: count }, () => connect({ port, host, localAddress }));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
}

/** By address. */
const sorted = (counts: Map<string, number>) => [...counts].sort(([a], [b]) => (a < b ? -1 : 1));

test.runIf(process.platform === "linux")(
  "the system's table says how many connections of a port each client holds",
  async () => {
    const both = await listen("::");
    const other = await listen("127.0.0.1");
    await open(both, "127.0.0.1", "127.0.0.2", 5);
    await open(both, "::1", "::1", 4);
    await open(both, "127.0.0.1", "127.0.0.3", 1);
    await open(other, "127.0.0.1", "127.0.0.2", 3);
    const found = [
      ["127.0.0.2", 5],
      ["::/64", 4],
    ];
    expect(sorted(await countClients(both, 2))).toEqual(found);
    expect(sorted(await countClients(both, 1))).toEqual([found[0], ["127.0.0.3", 1], found[1]]);
    expect(sorted(await countClients(other, 1))).toEqual([["127.0.0.2", 3]]);
  },
);
