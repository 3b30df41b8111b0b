/**
 * Creates markets and events: operators' markets open at once, users' proposals wait for a decision (lifecycle.ts). Owned
 * by the gateway thread; a slug is taken, and a proposal counts, before its write is durable.
 */

import type { KeptRequest } from "../../engine/log/request.ts";
import { MS_PER_DAY } from "../../engine/money.ts";
import type { EventRow } from "../../engine/projection/load/markets.ts";
import { assert } from "../../engine/util/assert.ts";
import { actorOf, audit, type RequestContext } from "../accounts/audit.ts";
import type { Operator } from "../accounts/operator.ts";
import type { Principal } from "../accounts/types.ts";
import { ApiError, badRequest, ErrorKind } from "../errors.ts";
import type { LogWriter } from "../writes/log-writer.ts";
import { MAX_PROPOSALS_PER_DAY, MAX_WAITING_PROPOSALS, PENDING_PROPOSALS_BY_USE } from "./limits.ts";
import { isProposed, type MarketRegistry } from "./registry.ts";
import { slugOf } from "./slugs.ts";
import type { Market } from "./types.ts";

/** Retry-After when an operator must decide first, seconds. */
const DECISION_WAIT_S = 3_600;

export interface MarketTexts {
  readonly question: string;
  readonly description: string | null;
  readonly category: string | null;
  readonly outcomes: readonly string[];
  /** ms */
  readonly closesAt: number | null;
  readonly eventId: number | null;
  /** Null: derived from the question. */
  readonly slug: string | null;
}

export interface EventTexts {
  readonly slug: string;
  readonly title: string;
  readonly category: string | null;
  /** ms */
  readonly closesAt: number | null;
}

export class MarketCatalog {
  private readonly registry: MarketRegistry;
  private readonly writer: LogWriter;
  /** Slugs of markets on their way to the database, with the proposing user (null: an operator). */
  private readonly making = new Map<string, number | null>();
  private readonly makingEvents = new Set<string>();

  constructor(registry: MarketRegistry, writer: LogWriter) {
    this.registry = registry;
    this.writer = writer;
  }

  /**
   * @param kept the record of a request with an Idempotency-Key, durable together with its effect; likewise below
   * @throws ApiError 40000, 40900 for a taken slug, 42900 past the user's limits
   */
  async propose(
    principal: Principal,
    texts: MarketTexts,
    context: RequestContext,
    kept: KeptRequest | null,
  ): Promise<Market> {
    const { userId } = principal;
    this.checkTexts(texts, context.now);
    this.checkProposals(userId, context.now);
    return this.make(texts, userId, actorOf(principal), context, kept);
  }

  /** Creates a market that opens at once. @throws ApiError 40000, 40900 for a taken slug or at the maximum number */
  async create(
    operator: Operator,
    texts: MarketTexts,
    context: RequestContext,
    kept: KeptRequest | null,
  ): Promise<Market> {
    this.checkTexts(texts, context.now);
    return this.make(texts, null, operator.actor, context, kept);
  }

  private async make(
    texts: MarketTexts,
    proposedBy: number | null,
    actor: string,
    context: RequestContext,
    kept: KeptRequest | null,
  ): Promise<Market> {
    const { registry, making } = this;
    const { now: at } = context;
    const isTaken = (slug: string): boolean => making.has(slug) || registry.findBySlug(slug) !== undefined;
    if (texts.slug !== null && isTaken(texts.slug)) throw slugTaken();
    const slug = texts.slug ?? slugOf(texts.question, isTaken);
    const opensAt = proposedBy === null ? at : null;
    const action = proposedBy === null ? "market.create" : "market.propose";
    const line = audit(context, actor, { action, userId: proposedBy, details: { slug } });
    making.set(slug, proposedBy);
    try {
      const write = { kind: "createMarket", ...texts, slug, opensAt, proposedBy, at } as const;
      return registry.market(await this.writer.insert(write, [line], kept));
    } finally {
      making.delete(slug);
    }
  }

  /** @throws ApiError 40000, 40900 for a taken slug */
  async createEvent(
    operator: Operator,
    texts: EventTexts,
    context: RequestContext,
    kept: KeptRequest | null,
  ): Promise<EventRow> {
    const { registry, makingEvents } = this;
    const { slug, closesAt } = texts;
    checkEnd(closesAt, context.now);
    if (makingEvents.has(slug) || registry.findEventBySlug(slug) !== undefined) throw slugTaken();
    const line = audit(context, operator.actor, { action: "event.create", userId: null, details: { slug } });
    makingEvents.add(slug);
    try {
      const id = await this.writer.insert({ kind: "createEvent", ...texts, at: context.now }, [line], kept);
      return registry.event(id);
    } finally {
      makingEvents.delete(slug);
    }
  }

  /** Checks the rules that a schema cannot express. @throws ApiError */
  private checkTexts({ outcomes, closesAt, eventId }: MarketTexts, now: number): void {
    const names = new Set<string>();
    outcomes.forEach((name, i) => {
      const folded = name.normalize("NFKC").toLowerCase();
      if (names.has(folded)) throw badRequest(`outcomes.${i}: another outcome has this name`);
      names.add(folded);
    });
    checkEnd(closesAt, now);
    if (eventId !== null && this.registry.findEvent(eventId) === undefined) throw badRequest("event_id: no such event");
  }

  /** @throws ApiError 42900 */
  private checkProposals(userId: number, now: number): void {
    const made = this.registry.proposalsOf(userId);
    let making = 0;
    for (const proposedBy of this.making.values()) if (proposedBy === userId) making++;
    const recent = made.filter(({ createdAt }) => createdAt > now - MS_PER_DAY);
    if (recent.length + making >= MAX_PROPOSALS_PER_DAY) {
      const first = recent.at(making - MAX_PROPOSALS_PER_DAY)?.createdAt ?? now;
      const wait = Math.ceil((first + MS_PER_DAY - now) / 1_000);
      throw new ApiError(ErrorKind.limitExceeded, `at most ${MAX_PROPOSALS_PER_DAY} proposals a day`, wait);
    }
    const waiting = this.registry.waitingProposals().size + this.making.size;
    if (waiting >= MAX_WAITING_PROPOSALS) throw tooManyWait(MAX_WAITING_PROPOSALS);
    const rule = PENDING_PROPOSALS_BY_USE.find(([part]) => waiting >= part * MAX_WAITING_PROPOSALS);
    assert(rule !== undefined, "the last rule covers every number of waiting proposals");
    const [, most] = rule;
    if (made.filter(isProposed).length + making >= most) throw tooManyWait(most);
  }
}

/** @throws ApiError 40000 */
function checkEnd(closesAt: number | null, now: number): void {
  if (closesAt !== null && closesAt <= now) throw badRequest("closes_at: must be in the future");
}

function tooManyWait(most: number): ApiError {
  return new ApiError(ErrorKind.limitExceeded, `at most ${most} proposals may wait for a decision`, DECISION_WAIT_S);
}

function slugTaken(): ApiError {
  return new ApiError(ErrorKind.conflict, "slug: already taken");
}
