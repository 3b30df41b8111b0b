/**
 * Integrations by their builder code: gives each a number at its first order and sums what came through it. What a pass
 * adds is written once a builder, in the transaction of the orders and fills themselves.
 */
import type Database from "better-sqlite3";

/** Codes whose numbers are kept in memory; the others are looked up by the table's own index. */
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
  /** By builder: what this pass adds. */
  private readonly added = new Map<number, Sums>();
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

  /** The builder's number, from 1, new where the code is. Inside a transaction. @param at ms */
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

  /** Writes what this pass added. Inside the transaction. */
  flush(): void {
    if (this.added.size === 0) return;
    for (const [id, { orders, fills, volume, notional, fees }] of this.added) {
      this.add.run(orders, fills, volume, notional, fees, id);
    }
    this.added.clear();
  }

  private sums(id: number): Sums {
    let sums = this.added.get(id);
    if (sums === undefined) {
      sums = { orders: 0, fills: 0, volume: 0, notional: 0, fees: 0 };
      this.added.set(id, sums);
    }
    return sums;
  }
}
