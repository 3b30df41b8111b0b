/**
 * Price alerts: a trade at an alert's price or beyond fires it, once. They wait in the users' rows and, by outcome, in
 * memory; an outcome's band of prices tells the registry which trades matter, so that other trades cost two comparisons.
 */
import type { Accounts } from "../accounts/accounts.ts";
import type { User } from "../accounts/types.ts";
import { changeUser } from "../accounts/users.ts";
import { ApiError, ErrorKind, notFound, overloaded } from "../errors.ts";
import type { MarketRegistry } from "../markets/registry.ts";
import type { AlertBand, Outcome } from "../markets/types.ts";
import type { LogWriter } from "../writes/log-writer.ts";
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

interface Fired extends Waiting {
  /** The trade's, ms and BPS. */
  readonly at: number;
  readonly price: number;
}

/** Fired alerts that are saved at once: some milliseconds of work. */
const SAVED_TOGETHER = 50;

export interface PriceAlertOptions {
  readonly registry: MarketRegistry;
  readonly accounts: Accounts;
  readonly writer: LogWriter;
}

export const readAlerts = (user: User): readonly PriceAlert[] =>
  user.priceAlerts === null ? [] : (JSON.parse(user.priceAlerts) as PriceAlert[]);

export class PriceAlerts {
  private readonly options: PriceAlertOptions;
  /** By outcome. */
  private readonly waiting = new Map<number, Waiting[]>();
  private count = 0;
  /** Fired, and not saved yet. */
  private readonly fired: Fired[] = [];
  private isSaving = false;
  /** Called once an alert that fired is saved. */
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
    const outcome = this.options.registry.outcome(alert.outcome);
    if (outcome !== undefined) this.keep(outcome, (each) => each.user !== user || each.alert.id !== id);
    await this.save(
      user,
      alerts.filter((each) => each.id !== id),
    );
  }

  private add(user: User, alert: PriceAlert): void {
    const outcome = this.options.registry.outcome(alert.outcome);
    // Outcomes never go, but for a proposal that was refused.
    if (outcome === undefined) return;
    const waiting = this.waiting.get(alert.outcome);
    if (waiting === undefined) this.waiting.set(alert.outcome, [{ user, alert }]);
    else waiting.push({ user, alert });
    this.count++;
    outcome.alertBand = widened(outcome.alertBand ?? NO_ALERTS, alert);
  }

  /** Keeps the alerts of an outcome that fit, and returns the others. */
  private keep(outcome: Outcome, fits: (each: Waiting) => boolean): Waiting[] {
    const kept: Waiting[] = [];
    const gone: Waiting[] = [];
    for (const each of this.waiting.get(outcome.id) ?? []) (fits(each) ? kept : gone).push(each);
    if (kept.length === 0) this.waiting.delete(outcome.id);
    else this.waiting.set(outcome.id, kept);
    outcome.alertBand = kept.length === 0 ? null : kept.reduce((band, { alert }) => widened(band, alert), NO_ALERTS);
    this.count -= gone.length;
    return gone;
  }

  private fire(outcome: Outcome, price: number, at: number): void {
    const reached = this.keep(outcome, ({ alert }) => !isReached(alert, price));
    for (const each of reached) this.fired.push({ ...each, at, price });
    if (!this.isSaving) void this.saveFired();
  }

  /** Saves fired alerts, some at a time: a trade may fire those of thousands of users. */
  private async saveFired(): Promise<void> {
    this.isSaving = true;
    try {
      while (this.fired.length > 0) {
        await Promise.all(this.fired.splice(0, SAVED_TOGETHER).map((each) => this.saveOne(each)));
      }
    } catch {
      // A write fails only where the log has failed, and it reports that itself.
      this.fired.length = 0;
    } finally {
      this.isSaving = false;
    }
  }

  private async saveOne({ user, alert, at, price }: Fired): Promise<void> {
    const alerts = readAlerts(user).map((each) => (each.id === alert.id ? { ...each, fired: { at, price } } : each));
    const old = new Set(alerts.filter(({ fired }) => fired !== null).slice(0, -MAX_FIRED_ALERTS));
    await this.save(
      user,
      alerts.filter((each) => !old.has(each)),
    );
    this.onFired(user);
  }

  private async save(user: User, alerts: readonly PriceAlert[]): Promise<void> {
    const priceAlerts = alerts.length === 0 ? null : JSON.stringify(alerts);
    await this.options.writer.write([changeUser(user, { priceAlerts })], []);
  }
}

const NO_ALERTS: AlertBand = { above: Number.POSITIVE_INFINITY, below: 0 };

/** The band with an alert more: it ends at the nearest ones. */
const widened = ({ above, below }: AlertBand, { direction, price }: PriceAlert): AlertBand =>
  direction === "above" ? { above: Math.min(above, price), below } : { above, below: Math.max(below, price) };

const isReached = (alert: Pick<PriceAlert, "direction" | "price">, price: number): boolean =>
  alert.direction === "above" ? price >= alert.price : price <= alert.price;
