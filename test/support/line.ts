/** A network line to a server that can be pulled: nothing passes, and neither end is told. */
import { once } from "node:events";
import { type AddressInfo, createConnection, createServer, type Server, type Socket } from "node:net";

export class Line {
  /** A port on loopback, for connections from now on. */
  target: number;
  private readonly server: Server;
  private readonly ends = new Set<Socket>();
  private isPulled = false;

  private constructor(server: Server, target: number) {
    this.target = target;
    this.server = server;
    server.on("connection", (near) => {
      const far = createConnection(this.target, "127.0.0.1");
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        this.ends.add(from);
        if (this.isPulled) from.pause();
        from.on("data", (chunk) => to.write(chunk));
        from.on("error", () => to.destroy());
        from.on("close", () => {
          this.ends.delete(from);
          to.destroy();
        });
      }
    });
  }

  /** @param target a port on loopback */
  static async open(target: number): Promise<Line> {
    const server = createServer();
    const line = new Line(server, target);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return line;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** New connections are accepted, as by a switch with a dead port behind it, and nothing passes on any. */
  pull(): void {
    this.isPulled = true;
    for (const end of this.ends) end.pause();
  }

  /** What waited in the sockets arrives late, as after a real cut. */
  plugIn(): void {
    this.isPulled = false;
    for (const end of this.ends) end.resume();
  }

  close(): void {
    this.server.close();
    for (const end of this.ends) end.destroy();
  }
}
