/**
 * The live orders of the exchange: one slot each in flat arrays, found by id, by user (newest first) and by the
 * user's client order id. A slot is taken at placement and given back when the order's last event was applied; the
 * same number names the order in the engine thread and in the texts. Owned by the gateway thread.
 */
import { check } from "../engine/check.ts";
import { MAX_LIVE_ORDERS } from "../engine/limits.ts";
import { NumberMap } from "../engine/number-map.ts";
import { OrderTexts } from "../engine/order-texts.ts";
import { withIndex } from "../engine/typed-arrays.ts";

/** Room from the start for so many, in memory that is used as they come: to grow a map of that size takes 50 ms. */
const EXPECTED_ORDERS = 600_000;

export class OrderStore {
  readonly texts = new OrderTexts(MAX_LIVE_ORDERS);
  // By slot, from 1. Integers below 2^31 in Int32Array, times and ids in Float64Array.
  readonly ids = new Float64Array(MAX_LIVE_ORDERS + 1);
  readonly users = new Int32Array(MAX_LIVE_ORDERS + 1);
  readonly markets = new Int32Array(MAX_LIVE_ORDERS + 1);
  readonly outcomes = new Int32Array(MAX_LIVE_ORDERS + 1);
  readonly prices = new Int32Array(MAX_LIVE_ORDERS + 1);
  /** What daily activity counts a share at: the price, or 9999 for a market order without bound. */
  readonly activityPrices = new Int32Array(MAX_LIVE_ORDERS + 1);
  readonly quantities = new Int32Array(MAX_LIVE_ORDERS + 1);
  readonly remaining = new Int32Array(MAX_LIVE_ORDERS + 1);
  /** The packed word of the placement: side, type, time in force, self-trade prevention, flags (records.ts). */
  readonly packed = new Int32Array(MAX_LIVE_ORDERS + 1);
  readonly statuses = new Uint8Array(MAX_LIVE_ORDERS + 1);
  readonly expiresAt = new Float64Array(MAX_LIVE_ORDERS + 1);
  readonly createdAt = new Float64Array(MAX_LIVE_ORDERS + 1);
  readonly updatedAt = new Float64Array(MAX_LIVE_ORDERS + 1);

  private readonly older = new Int32Array(MAX_LIVE_ORDERS + 1);
  private readonly newer = new Int32Array(MAX_LIVE_ORDERS + 1);
  private newest = new Int32Array(1024);
  private readonly slotOfId = new NumberMap(EXPECTED_ORDERS);
  private readonly byClientId = new Map<string, number>();
  private readonly freeSlots = new Int32Array(MAX_LIVE_ORDERS + 1);
  private freeCount = 0;
  private usedSlots = 0;

  get liveCount(): number {
    return this.usedSlots - this.freeCount;
  }

  /** A free slot, or 0 when the exchange holds as many live orders as it can. */
  takeSlot(): number {
    if (this.freeCount > 0) return this.freeSlots[--this.freeCount]!;
    return this.usedSlots < MAX_LIVE_ORDERS ? ++this.usedSlots : 0;
  }

  /** Gives back a slot that was never linked. */
  returnSlot(slot: number): void {
    this.freeSlots[this.freeCount++] = slot;
  }

  /** Makes the order, whose fields are set, findable. Orders of one user are linked in the order of their ids. */
  link(slot: number, clientOrderId: string | null): void {
    const user = this.users[slot]!;
    this.slotOfId.set(this.ids[slot]!, slot);
    this.newest = withIndex(this.newest, user);
    const head = this.newest[user]!;
    check(head === 0 || this.ids[head]! < this.ids[slot]!, "a user's orders are linked in the order of their ids");
    this.older[slot] = head;
    this.newer[slot] = 0;
    if (head !== 0) this.newer[head] = slot;
    this.newest[user] = slot;
    if (clientOrderId !== null) {
      this.texts.write(slot, clientOrderId);
      this.byClientId.set(`${user}:${clientOrderId}`, slot);
    }
  }

  /** Ends an order: it is found no more and its slot is free. */
  remove(slot: number, clientOrderId: string | null): void {
    const older = this.older[slot]!;
    const newer = this.newer[slot]!;
    const user = this.users[slot]!;
    if (older !== 0) this.newer[older] = newer;
    if (newer !== 0) this.older[newer] = older;
    else this.newest[user] = older;
    this.slotOfId.delete(this.ids[slot]!);
    if (clientOrderId !== null) this.byClientId.delete(`${user}:${clientOrderId}`);
    this.ids[slot] = 0;
    this.freeSlots[this.freeCount++] = slot;
  }

  /** The slot of a live order, or 0. */
  find(orderId: number): number {
    return this.slotOfId.get(orderId);
  }

  findByClientId(user: number, clientOrderId: string): number {
    return this.byClientId.get(`${user}:${clientOrderId}`) ?? 0;
  }

  /** The user's newest live order, then `olderOf`; 0 ends. */
  newestOf(user: number): number {
    return this.newest[user] ?? 0;
  }

  olderOf(slot: number): number {
    return this.older[slot]!;
  }
}
