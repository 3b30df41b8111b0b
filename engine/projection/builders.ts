/**
 * Integrations by their builder code: assigns each a number at its first order and sums its orders and fills. Writes
 * each builder's row once a transaction, with the orders and fills themselves.
 */
import type Database from "better-sqlite3";

/** Codes cached in memory; others are looked up in the table's index. */
const MAX_CACHED_CODES = 10_000;

interface Sums {
  orders: number;
  fills: number;
  volume: number;
  notional: number;
  fees: number;
}

export class Builders {
  private readonly ids = new Map<string, number>();
  /** By builder: the sums of this transaction. */
  private readonly pending = new Map<number, Sums>();
  private readonly find: Database.Statement;
  private readonly insert: Database.Statement;
  private readonly add: Database.Statement;

  constructor(db: Database.Database) {
    this.find = db.prepare("SELECT id FROM builders WHERE code = ?").pluck();
    this.insert = db.prepare("INSERT INTO builders VALUES (NULL, ?, 0, 0, 0, 0, 0, ?)");
    this.add = db.prepare(
      `UPDATE builders SET orders = orders + ?, fills = fills + ?, volume = volume + ?, notional = notional + ?,
       fees = fees + ? WHERE id = ?`,
    );
  }

  /** The builder's number, from 1; assigns one to a new code. Inside a transaction. @param at ms */
  idOf(code: string, at: number): number {
    const known = this.ids.get(code);
    if (known !== undefined) return known;
    const id = Number(this.find.get(code) ?? this.insert.run(code, at).lastInsertRowid);
    if (this.ids.size >= MAX_CACHED_CODES) this.ids.clear();
    this.ids.set(code, id);
    return id;
  }

  addOrder(id: number): void {
    this.sums(id).orders++;
  }

  /** @param notional,fee micro-USDC */
  addFill(id: number, quantity: number, notional: number, fee: number): void {
    const sums = this.sums(id);
    sums.fills++;
    sums.volume += quantity;
    sums.notional += notional;
    sums.fees += fee;
  }

  /** Writes the sums of this transaction. Inside the transaction. */
  flush(): void {
    if (this.pending.size === 0) return;
    for (const [id, { orders, fills, volume, notional, fees }] of this.pending) {
      this.add.run(orders, fills, volume, notional, fees, id);
    }
    this.pending.clear();
  }

  private sums(id: number): Sums {
    let sums = this.pending.get(id);
    if (sums === undefined) {
      sums = { orders: 0, fills: 0, volume: 0, notional: 0, fees: 0 };
      this.pending.set(id, sums);
    }
    return sums;
  }
}
