/** The gateway's messages to the replication thread: some have their listener, others are waited for. */
import type { MessagePort } from "node:worker_threads";
import type { ReplicationRequest } from "./types.ts";

type Kind = ReplicationRequest["kind"];
type Request<K extends Kind> = Extract<ReplicationRequest, { kind: K }>;

export class Mailbox {
  private readonly listeners = new Map<Kind, (request: ReplicationRequest) => void>();

  constructor(port: MessagePort) {
    port.on("message", (request: ReplicationRequest) => this.listeners.get(request.kind)?.(request));
  }

  /** Calls the listener, and none that was there before, with each message of the kind. */
  on<K extends Kind>(kind: K, listener: (request: Request<K>) => void): void {
    this.listeners.set(kind, (request) => listener(request as Request<K>));
  }

  /** Resolves with the next message of the kind. */
  next<K extends "follow" | "lead">(kind: K): Promise<Request<K>> {
    return new Promise((resolve) => this.listeners.set(kind, (request) => resolve(request as Request<K>)));
  }
}
