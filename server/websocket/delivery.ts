/**
 * Gathers what connections are sent, and writes it out at the end of a committed batch, of a received message, or of the
 * current microtasks: what one turn has for a connection leaves in one write.
 */
import type { EventLoopGuard } from "../http/event-loop-guard.ts";
import type { SocketConnection } from "./connection.ts";
import { FramePool, type FrameWriter } from "./sbe/frame-writer.ts";

export class Delivery {
  private readonly guard: EventLoopGuard;
  /** Connections with messages to flush. */
  private readonly unflushed = new Set<SocketConnection>();
  private readonly pool = new FramePool();
  private isScheduled = false;

  constructor(guard: EventLoopGuard) {
    this.guard = guard;
  }

  /** Sends a connection a message with the next flush. */
  send(connection: SocketConnection, message: string): void {
    if (connection.push(message)) this.unflushed.add(connection);
  }

  /** The same for a message that is ready in what the connection speaks. */
  deliver(connection: SocketConnection, message: string | Uint8Array): void {
    if (typeof message === "string") this.send(connection, message);
    else this.frame(connection)?.append(message);
  }

  /** The frame that the next flush sends to a connection that speaks SBE; null where the connection has closed. */
  frame(connection: SocketConnection): FrameWriter | null {
    if (connection.frame !== null) return connection.frame;
    if (connection.socket === null) return null;
    this.unflushed.add(connection);
    connection.frame = this.pool.take();
    return connection.frame;
  }

  /** Flushes at the latest when the current microtasks end. */
  flushSoon(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    queueMicrotask(this.flushScheduled);
  }

  private readonly flushScheduled = (): void => {
    this.isScheduled = false;
    this.flush();
  };

  /** Writes out what the connections were sent. */
  readonly flush = (): void => {
    const { guard } = this;
    // A response leaves before the messages about what it responds to, and a read before news that is newer.
    if (guard.deferred.length > 0) guard.release();
    if (this.unflushed.size === 0) return;
    for (const connection of this.unflushed) {
      connection.flush();
      this.release(connection);
    }
    this.unflushed.clear();
  };

  /** The connection has closed. */
  forget(connection: SocketConnection): void {
    this.unflushed.delete(connection);
    this.release(connection);
  }

  private release(connection: SocketConnection): void {
    if (connection.frame === null) return;
    this.pool.give(connection.frame);
    connection.frame = null;
  }
}
