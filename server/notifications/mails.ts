/**
 * Mails that say what happened: at most one a user and interval, and those about fills less often. How far they have come
 * is in a file, so that a restart goes on there. After a crash, a few users may get a mail twice.
 */
import { randomBytes, timingSafeEqual } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";
import { FULL_PRICE_BPS } from "../../engine/limits.ts";
import type { Accounts } from "../accounts/accounts.ts";
import type { User } from "../accounts/types.ts";
import { changeUser } from "../accounts/users.ts";
import { ApiError, notFound } from "../errors.ts";
import { closed, nullable, Time } from "../http/schemas.ts";
import type { Logger } from "../logger.ts";
import type { MarketRegistry } from "../markets/registry.ts";
import type { Notifier } from "../messages/notifier.ts";
import type { History } from "../queries/history.ts";
import type { NotificationObject } from "../queries/notification-reader.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import { happenedMail } from "./mail-text.ts";
import type { Notifications } from "./notifications.ts";
import { readAlerts } from "./price-alerts.ts";
import { changedState, NO_TOPICS, readState, type Topic, type Topics } from "./settings.ts";
import { happeningTexts } from "./texts.ts";

/** The mails about fills are this many times rarer than the others. */
const FILLS_FACTOR = 15;
/** What happened less than this ago waits for the next mail: its commit may still be in progress. */
const SETTLING_MS = 5_000;
/** What happened longer ago, while no server ran, is not mailed any more. */
const OLDEST_MS = 7 * 86_400_000;
/** Users of one read. */
const USERS_READ = 1_000;
/** Users after which the file is written: so many may get a mail twice after a crash. */
const USERS_SAVED = 50;
const SECRET_BYTES = 16;
/** How far a round has come, as the file has it. */
const Progress = closed({ since: Time, until: nullable(Time), after: Type.Integer({ minimum: 0 }) });
const validator = Compile(closed({ events: Progress, fills: Progress }));

/** One kind of mail. */
interface Round {
  readonly name: "events" | "fills";
  readonly topics: readonly Topic[];
  readonly intervalMs: number;
  /** What happened until then was mailed, ms. */
  since: number;
  /** The end of the current round, ms; null between rounds. */
  until: number | null;
  /** The round's users until this one have their mail. */
  after: number;
  isRunning: boolean;
}

type Saved = Static<typeof Progress>;

export interface NotificationMailOptions {
  readonly accounts: Accounts;
  readonly registry: MarketRegistry;
  readonly history: History;
  readonly notifications: Notifications;
  readonly notifier: Notifier;
  readonly writer: LogWriter;
  /** PUBLIC_URL, and the API's. */
  readonly site: () => string;
  readonly api: () => string;
  /** Says how far the mails have come. */
  readonly file: string;
  /** 0: no mails. */
  readonly intervalMs: number;
  readonly logger: Logger;
}

export class NotificationMails {
  private readonly options: NotificationMailOptions;
  private readonly rounds: readonly Round[];
  /** Users with mails about fills. */
  private readonly fillReaders = new Set<number>();
  /** Users whose price alerts fired, and may not have been mailed. */
  private readonly alerted = new Set<number>();
  private isStopping = false;
  private saved: Promise<void> = Promise.resolve();

  constructor(options: NotificationMailOptions) {
    this.options = options;
    const { intervalMs } = options;
    const start = { since: 0, until: null, after: 0, isRunning: false };
    this.rounds = [
      { ...start, name: "events", topics: ["resolutions", "payments", "alerts"], intervalMs },
      { ...start, name: "fills", topics: ["fills"], intervalMs: FILLS_FACTOR * intervalMs },
    ];
  }

  /** Reads how far the mails have come; a new exchange begins now. @param now ms, of the timeline */
  async start(now: number): Promise<void> {
    const { accounts, file, intervalMs } = this.options;
    if (intervalMs === 0) return;
    const saved = await readSaved(file);
    for (const round of this.rounds) {
      const { since, until, after } = saved[round.name] ?? { since: now, until: null, after: 0 };
      // While the timeline stands still, what happens next has its time: rather a mail twice than none.
      round.since = Math.max(Math.min(since, now - 1), now - OLDEST_MS);
      // A round that is too old is not gone on with.
      round.until = until !== null && until > round.since ? until : null;
      round.after = round.until === null ? 0 : after;
    }
    const since = Math.min(...this.rounds.map((round) => round.since));
    for (const user of accounts.allUsers()) {
      this.settingsChanged(user);
      if (readAlerts(user).some(({ fired }) => fired !== null && fired.at > since)) this.alerted.add(user.id);
    }
  }

  settingsChanged({ id, notifications }: User): void {
    if (notifications === null || !readState(notifications).mail.fills) this.fillReaders.delete(id);
    else this.fillReaders.add(id);
  }

  alertFired(user: User): void {
    if (this.options.intervalMs > 0) this.alerted.add(user.id);
  }

  /** Begins the rounds that are due. Called every second or so. @param now ms, of the timeline: a round has all that was before */
  check(now: number): void {
    if (this.options.intervalMs === 0 || this.isStopping) return;
    for (const round of this.rounds) {
      if (round.isRunning || (round.until === null && now - SETTLING_MS - round.since < round.intervalMs)) continue;
      round.isRunning = true;
      this.run(round, now)
        .catch((error: unknown) => this.report(error))
        .finally(() => {
          round.isRunning = false;
        });
    }
  }

  /** Begins no mail from now on: the next start goes on with the round. */
  async stop(): Promise<void> {
    if (this.options.intervalMs === 0) return;
    this.isStopping = true;
    await this.save().catch((error: unknown) => this.report(error));
  }

  /** The user of a link that ends mails. @throws ApiError 4040 */
  private userOf(token: string): User {
    const [id = "", secret = ""] = token.split(".");
    const user = /^\d{1,15}$/.test(id) ? this.options.accounts.user(Number(id)) : undefined;
    const own = user === undefined ? null : readState(user.notifications).mailSecret;
    if (user === undefined || own === null || !isSame(own, secret)) throw notFound("link");
    return user;
  }

  /** @throws ApiError 4040 for a link that isn't complete */
  checkLink(token: string): void {
    this.userOf(token);
  }

  /** Ends all mails of the link's user. @throws ApiError 4040 */
  async unsubscribe(token: string): Promise<void> {
    const user = this.userOf(token);
    const text = changedState(user.notifications, { mail: NO_TOPICS });
    await this.options.writer.write([changeUser(user, { notifications: text })], []);
    this.settingsChanged(user);
  }

  private async run(round: Round, now: number): Promise<void> {
    round.until ??= now - SETTLING_MS;
    const { until } = round;
    let count = 0;
    for (const id of await this.usersOf(round, until)) {
      await this.options.notifier.room();
      if (this.isStopping) return;
      await this.mailOnce(round, id, until).catch((error: unknown) => {
        // An overloaded or stopping server: the round goes on later, at this user.
        if (error instanceof ApiError) throw error;
        this.report(error);
      });
      round.after = id;
      if (++count % USERS_SAVED === 0) await this.save();
    }
    Object.assign(round, { since: until, until: null, after: 0 });
    await this.save();
  }

  /** Users to whom something may have happened, ascending, without those that have their mail. */
  private async usersOf({ name, since, after }: Round, until: number): Promise<number[]> {
    const found = new Set<number>();
    if (name === "fills") {
      for (const id of this.fillReaders) found.add(id);
    } else {
      for (const id of this.alerted) found.add(id);
      for (let last = after; ; ) {
        const ids = await this.options.history.usersWithNews({ since, until, after: last, limit: USERS_READ });
        for (const id of ids) found.add(id);
        if (ids.length < USERS_READ) break;
        last = ids.at(-1) ?? last;
      }
    }
    return [...found].filter((id) => id > after).sort((a, b) => a - b);
  }

  /** @throws ApiError 50300 where the round must go on later */
  private async mailOnce(round: Round, id: number, until: number): Promise<void> {
    const user = this.options.accounts.user(id);
    const isWaiting = user !== undefined && readAlerts(user).some(({ fired }) => fired !== null && fired.at > until);
    if (!isWaiting) this.alerted.delete(id);
    if (user === undefined || user.emailVerifiedAt === null) return;
    const { mail } = readState(user.notifications);
    const topics: Topics = { ...NO_TOPICS, ...Object.fromEntries(round.topics.map((topic) => [topic, mail[topic]])) };
    if (!round.topics.some((topic) => topics[topic])) return;
    const found = await this.options.notifications.between(user, topics, round.since, until);
    // A withdrawal has mails of its own, at once and for everyone: somebody else may have asked for it.
    const told = found.filter(({ kind }) => kind !== "withdrawal");
    const [first, ...others] = told.map((item) => ({ ...this.textsOf(item), at: item.at }));
    if (first === undefined) return;
    const { site, api, notifier } = this.options;
    const token = await this.tokenOf(user);
    notifier.sendMail(
      happenedMail(user.email, [first, ...others], {
        portfolio: `${site()}/portfolio`,
        settings: `${site()}/account#notifications`,
        unsubscribe: `${site()}/unsubscribe/${token}`,
        oneClick: `${api()}/auth/unsubscribe/${token}`,
      }),
    );
  }

  private textsOf(item: NotificationObject): { title: string; detail: string } {
    const { market_id, outcome_id } = item;
    const { registry } = this.options;
    const market = market_id === null ? undefined : registry.market(market_id);
    const winner = market?.resolution?.payouts.indexOf(FULL_PRICE_BPS) ?? -1;
    const names = { market: registry.names.market(market_id), outcome: registry.names.outcome(outcome_id) };
    return happeningTexts(item, { ...names, winner: market?.outcomes[winner]?.name });
  }

  /** What the user's links have: it ends mails and nothing else. */
  private async tokenOf(user: User): Promise<string> {
    const { mailSecret } = readState(user.notifications);
    if (mailSecret !== null) return `${user.id}.${mailSecret}`;
    const secret = randomBytes(SECRET_BYTES).toString("base64url");
    const text = changedState(user.notifications, { mailSecret: secret });
    await this.options.writer.write([changeUser(user, { notifications: text })], []);
    return `${user.id}.${secret}`;
  }

  /** One at a time: each has the same file beside the one that it takes the place of. */
  private save(): Promise<void> {
    const saved = this.saved.catch(() => {}).then(() => this.write());
    this.saved = saved;
    return saved;
  }

  private async write(): Promise<void> {
    const saved = Object.fromEntries(
      this.rounds.map(({ name, since, until, after }) => [name, { since, until, after }]),
    );
    const partial = `${this.options.file}.part`;
    await writeFile(partial, JSON.stringify(saved), { mode: 0o600 });
    await rename(partial, this.options.file);
  }

  private report(error: unknown): void {
    if (this.isStopping) return;
    const code = error instanceof ApiError ? error.kind.code : String((error as { code?: unknown }).code ?? error);
    this.options.logger.warn({ code }, "mails about what happened wait");
  }
}

function isSame(own: string, given: string): boolean {
  const [a, b] = [Buffer.from(own), Buffer.from(given)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Nothing where there is no file, or none of ours: mails begin anew. */
async function readSaved(file: string): Promise<Partial<Record<Round["name"], Saved>>> {
  try {
    const saved: unknown = JSON.parse(await readFile(file, "utf8"));
    return validator.Check(saved) ? saved : {};
  } catch {
    return {};
  }
}
