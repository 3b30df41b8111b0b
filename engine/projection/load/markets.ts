/** Loads markets, outcomes and events at startup. Never writes. */
import type Database from "better-sqlite3";
import type { MarketStatus } from "../../constants.ts";

export interface MarketRow {
  id: number;
  slug: string;
  question: string;
  description: string | null;
  category: string | null;
  eventId: number | null;
  status: MarketStatus;
  sets: number;
  opensAt: number | null;
  closesAt: number | null;
  /** The hash of its picture. */
  picture: string | null;
  createdAt: number;
  /** The user who proposed the market; null if an operator or a seed created it. */
  proposedBy: number | null;
  /** The operator's note on approving or refusing the proposal. */
  decisionNote: string | null;
  decidedAt: number | null;
  resolutionNote: string | null;
  resolvedAt: number | null;
  firstOutcomeId: number;
  outcomes: number;
}

/** The picture, decision and resolution of a new market. */
export const UNDECIDED = { picture: null, decisionNote: null, decidedAt: null, resolutionNote: null, resolvedAt: null };

export interface OutcomeRow {
  id: number;
  marketId: number;
  position: number;
  name: string;
  lastPrice: number | null;
  volume: number;
  /** BPS; null until the market is resolved. */
  payout: number | null;
}

export interface EventRow {
  id: number;
  slug: string;
  title: string;
  category: string | null;
  closesAt: number | null;
  createdAt: number;
}

export function loadMarkets(db: Database.Database): MarketRow[] {
  return db
    .prepare(
      `SELECT m.id, slug, question, description, category, event_id AS eventId, status, sets, opens_at AS opensAt,
       closes_at AS closesAt, p.hash AS picture, created_at AS createdAt, proposed_by AS proposedBy, decision_note AS decisionNote,
       decided_at AS decidedAt, resolution_note AS resolutionNote, resolved_at AS resolvedAt,
       min(o.id) AS firstOutcomeId, count(*) AS outcomes
       FROM markets m JOIN outcomes o ON o.market_id = m.id LEFT JOIN market_pictures p ON p.market_id = m.id GROUP BY m.id`,
    )
    .all() as MarketRow[];
}

export function loadOutcomes(db: Database.Database): OutcomeRow[] {
  return db
    .prepare("SELECT id, market_id AS marketId, position, name, last_price AS lastPrice, volume, payout FROM outcomes")
    .all() as OutcomeRow[];
}

export function loadEvents(db: Database.Database): EventRow[] {
  return db
    .prepare("SELECT id, slug, title, category, closes_at AS closesAt, created_at AS createdAt FROM events")
    .all() as EventRow[];
}
