/**
 * Price alerts: a trade at an alert's price or beyond fires it, once. They wait in the users' rows and, by outcome, in
 * memory; an outcome's band of prices tells the registry which trades matter, so that other trades cost two comparisons.
 */
import type { AccountWriter } from "../accounts/account-writer.ts";
import type { Accounts } from "../accounts/accounts.ts";
import type { User } from "../accounts/types.ts";
import { changeUser } from "../accounts/users.ts";
import { ApiError, ErrorKind, notFound, overloaded } from "../errors.ts";
import type { MarketRegistry } from "../markets/registry.ts";
import type { Outcome } from "../markets/types.ts";
import { MAX_FIRED_ALERTS, MAX_PRICE_ALERTS, MAX_WAITING_ALERTS } from "./limits.ts";

export type Direction = "above" | "below";

export interface PriceAlert {
  /** Unique among the user's. */
  readonly id: number;
  readonly outcome: number;
  readonly direction: Direction;
  /** BPS. */
  readonly price: number;
  /** ms since the epoch. */
  readonly at: number;
  /** The trade that fired it; null while it waits. */
  readonly fired: { readonly at: number; readonly price: number } | null;
}

interface Waiting {
  readonly user: User;
  readonly alert: PriceAlert;
}

export interface PriceAlertOptions {
  readonly registry: MarketRegistry;
  readonly accounts: Accounts;
  readonly writer: AccountWriter;
}

export const readAlerts = (user: User): readonly PriceAlert[] =>
  user.priceAlerts === null ? [] : (JSON.parse(user.priceAlerts) as PriceAlert[]);

export class PriceAlerts {
  private readonly options: PriceAlertOptions;
  /** By outcome. */
  private readonly waiting = new Map<number, Waiting[]>();
  private count = 0;
  /** Called once a fired alert is durable. */
  onFired: (user: User) => void = () => {};

  constructor(options: PriceAlertOptions) {
    this.options = options;
    for (const user of options.accounts.allUsers()) {
      for (const alert of readAlerts(user)) if (alert.fired === null) this.add(user, alert);
    }
  }

  /** Fires alerts from now on, and at once those whose trades a crash left behind. @param now ms */
  start(now: number): void {
    const { registry } = this.options;
    registry.onAlert = (outcome, price, at) => this.fire(outcome, price, at);
    for (const outcomeId of [...this.waiting.keys()]) {
      const outcome = registry.outcome(outcomeId);
      if (outcome !== undefined && outcome.lastPrice !== null) this.fire(outcome, outcome.lastPrice, now);
    }
  }

  /** Alerts of all users that wait. */
  get size(): number {
    return this.count;
  }

  /** @param now ms @throws ApiError 4040, 40900, 50300 */
  async create(user: User, outcome: Outcome, direction: Direction, price: number, now: number): Promise<PriceAlert> {
    const { lastPrice } = outcome;
    if (lastPrice !== null && isReached({ direction, price }, lastPrice)) {
      throw new ApiError(
        ErrorKind.conflict,
        `the last price is ${lastPrice} BPS already: at ${price} or ${direction} it`,
      );
    }
    const alerts = readAlerts(user);
    if (alerts.filter(({ fired }) => fired === null).length >= MAX_PRICE_ALERTS) {
      throw new ApiError(
        ErrorKind.conflict,
        `at most ${MAX_PRICE_ALERTS} price alerts wait at a time: delete some first`,
      );
    }
    if (this.count >= MAX_WAITING_ALERTS) throw overloaded("too many price alerts wait: try again later");
    const id = 1 + Math.max(0, ...alerts.map((each) => each.id));
    const alert: PriceAlert = { id, outcome: outcome.id, direction, price, at: now, fired: null };
    this.add(user, alert);
    await this.save(user, [...alerts, alert]);
    return alert;
  }

  /** @throws ApiError 4040 */
  async delete(user: User, id: number): Promise<void> {
    const alerts = readAlerts(user);
    const alert = alerts.find((each) => each.id === id && each.fired === null);
    if (alert === undefined) throw notFound("price alert");
    this.remove(user, alert);
    await this.save(
      user,
      alerts.filter((each) => each.id !== id),
    );
  }

  private add(user: User, alert: PriceAlert): void {
    const { registry } = this.options;
    const outcome = registry.outcome(alert.outcome);
    // Outcomes never go, but for a proposal that was refused.
    if (outcome === undefined) return;
    this.waiting.set(alert.outcome, [...(this.waiting.get(alert.outcome) ?? []), { user, alert }]);
    this.count++;
    this.setBand(outcome);
  }

  private remove(user: User, { id, outcome: outcomeId }: PriceAlert): void {
    const before = this.waiting.get(outcomeId) ?? [];
    const after = before.filter((each) => each.user !== user || each.alert.id !== id);
    this.count -= before.length - after.length;
    if (after.length === 0) this.waiting.delete(outcomeId);
    else this.waiting.set(outcomeId, after);
    const outcome = this.options.registry.outcome(outcomeId);
    if (outcome !== undefined) this.setBand(outcome);
  }

  private setBand(outcome: Outcome): void {
    const waiting = this.waiting.get(outcome.id);
    if (waiting === undefined) {
      outcome.alertBand = null;
      return;
    }
    const pricesOf = (wanted: Direction): number[] =>
      waiting.filter(({ alert }) => alert.direction === wanted).map(({ alert }) => alert.price);
    outcome.alertBand = { above: Math.min(Infinity, ...pricesOf("above")), below: Math.max(0, ...pricesOf("below")) };
  }

  private fire(outcome: Outcome, price: number, at: number): void {
    for (const { user, alert } of this.waiting.get(outcome.id) ?? []) {
      if (!isReached(alert, price)) continue;
      this.remove(user, alert);
      const alerts = readAlerts(user).map((each) => (each.id === alert.id ? { ...each, fired: { at, price } } : each));
      const old = new Set(alerts.filter(({ fired }) => fired !== null).slice(0, -MAX_FIRED_ALERTS));
      // A write fails only where the log has failed, and it reports that itself.
      this.save(
        user,
        alerts.filter((each) => !old.has(each)),
      ).then(
        () => this.onFired(user),
        () => {},
      );
    }
  }

  private async save(user: User, alerts: readonly PriceAlert[]): Promise<void> {
    const priceAlerts = alerts.length === 0 ? null : JSON.stringify(alerts);
    await this.options.writer.write([changeUser(user, { priceAlerts })], []);
  }
}

const isReached = (alert: Pick<PriceAlert, "direction" | "price">, price: number): boolean =>
  alert.direction === "above" ? price >= alert.price : price <= alert.price;
