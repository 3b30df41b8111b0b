/**
 * Delivers users' messages in order, with holds: while a composite reply is incomplete, messages of its user that follow its
 * first event wait until it was sent. Holds of one user may overlap; a message waits only for holds older than itself.
 * Stands between the exchange and whoever sends (the WebSocket hub); formats nothing.
 */
import type { Hold, UserListener, UserSink } from "./types.ts";

/** A message that waits. */
type Held<Update> =
  | { readonly kind: "order"; readonly sequence: number; readonly at: number; readonly json: string }
  | { readonly kind: "account"; readonly update: Update }
  | { readonly kind: "callback"; readonly callback: () => void };

class OpenHold<Update> implements Hold {
  isOver = false;
  /** Messages since this hold began and before the next one did. */
  readonly messages: Held<Update>[] = [];
  private readonly released: () => void;

  constructor(released: () => void) {
    this.released = released;
  }

  release(): void {
    this.isOver = true;
    this.released();
  }
}

export class UserOutbox<Update> implements UserListener {
  private readonly sink: UserSink<Update>;
  /** By user with a hold: its holds that messages wait for, oldest first. */
  private readonly holds = new Map<number, OpenHold<Update>[]>();

  constructor(sink: UserSink<Update>) {
    this.sink = sink;
  }

  listens(userId: number): boolean {
    return this.sink.listens(userId);
  }

  hold(userId: number): Hold {
    const hold = new OpenHold<Update>(() => this.release(userId));
    const holds = this.holds.get(userId);
    if (holds === undefined) this.holds.set(userId, [hold]);
    else holds.push(hold);
    return hold;
  }

  /** True where a message of the user would wait. */
  isHeld(userId: number): boolean {
    return this.holds.size > 0 && this.holds.has(userId);
  }

  orderUpdated(userId: number, sequence: number, at: number, json: string): void {
    const last = this.newestHold(userId);
    if (last === undefined) this.sink.orderUpdated(userId, sequence, at, json);
    else last.messages.push({ kind: "order", sequence, at, json });
  }

  /** An account's change is formatted when it happens, and sent when nothing older waits. */
  accountChanged(userId: number, sequence: number, at: number, outcomeIds: ReadonlySet<number>): void {
    const update = this.sink.accountUpdate(userId, sequence, at, outcomeIds);
    if (update === null) return;
    const last = this.newestHold(userId);
    if (last === undefined) this.sink.sendAccountUpdate(update);
    else last.messages.push({ kind: "account", update });
  }

  afterMessages(userId: number, callback: () => void): void {
    const last = this.newestHold(userId);
    if (last === undefined) callback();
    else last.messages.push({ kind: "callback", callback });
  }

  endBatch(): void {
    this.sink.flush();
  }

  private newestHold(userId: number): OpenHold<Update> | undefined {
    return this.holds.size === 0 ? undefined : this.holds.get(userId)?.at(-1);
  }

  private release(userId: number): void {
    const holds = this.holds.get(userId) ?? [];
    while (holds[0]?.isOver === true) {
      for (const message of holds.shift()?.messages ?? []) this.deliver(userId, message);
    }
    if (holds.length === 0) this.holds.delete(userId);
  }

  private deliver(userId: number, message: Held<Update>): void {
    switch (message.kind) {
      case "order":
        return this.sink.orderUpdated(userId, message.sequence, message.at, message.json);
      case "account":
        return this.sink.sendAccountUpdate(message.update);
      case "callback":
        return message.callback();
    }
  }
}
