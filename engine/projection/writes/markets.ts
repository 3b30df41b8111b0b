/** Creates events and markets, decides proposals, and keeps the search index of their texts. */
import type Database from "better-sqlite3";
import { MarketStatus } from "../../constants.ts";
import { LAST_PROPOSED_OUTCOME_ID, MAX_ACTIVE_BOOKS, MAX_OUTCOME_ID } from "../../limits.ts";
import { assert } from "../../util/assert.ts";
import { refusedOutcomeId } from "../outcome-ids.ts";
import { indexedWords } from "../search-words.ts";
import { existing, type WriteContext, type WriteOf, WriteRefused, type WriteResult } from "./account-write.ts";

/** The engine threads use the last two ids for their warm-up. */
const LAST_OUTCOME_ID = MAX_OUTCOME_ID - 2;

export interface MarketWrites {
  createEvent(write: WriteOf<"createEvent">): WriteResult;
  createMarket(write: WriteOf<"createMarket">): WriteResult;
  openMarket(write: WriteOf<"openMarket">): WriteResult;
  refuseMarket(write: WriteOf<"refuseMarket">): WriteResult;
  describeMarket(write: WriteOf<"describeMarket">): WriteResult;
}

function prepareCreateEvent(db: Database.Database): MarketWrites["createEvent"] {
  const eventBySlug = db.prepare("SELECT id FROM events WHERE slug = ?").pluck();
  const insertEvent = db.prepare(
    "INSERT INTO events (slug, title, category, closes_at, created_at) VALUES (?, ?, ?, ?, ?)",
  );
  const insertEventWords = db.prepare("INSERT INTO event_words (rowid, words) VALUES (?, ?)");
  return ({ slug, title, category, closesAt, at }) => {
    const found = eventBySlug.get(slug);
    if (found !== undefined) return existing(found);
    const { lastInsertRowid } = insertEvent.run(slug, title, category, closesAt, at);
    insertEventWords.run(lastInsertRowid, indexedWords(title, category, slug));
    return { id: Number(lastInsertRowid), created: true };
  };
}

/** @throws WriteRefused if `outcomes` more books would exceed the bound */
function checkRoom(context: WriteContext, outcomes: number): void {
  if (context.openOutcomes() + outcomes > MAX_ACTIVE_BOOKS) {
    throw new WriteRefused("the exchange is at its maximum number of open markets");
  }
}

function prepareCreateMarket(db: Database.Database, context: WriteContext): MarketWrites["createMarket"] {
  const marketBySlug = db.prepare("SELECT id FROM markets WHERE slug = ?").pluck();
  const insertMarket = db.prepare(
    `INSERT INTO markets (slug, question, description, category, event_id, status, sets, opens_at, closes_at, proposed_by,
       created_at) VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)`,
  );
  const insertMarketWords = db.prepare("INSERT INTO market_words (rowid, words) VALUES (?, ?)");
  const lastMarket = db.prepare("SELECT coalesce(max(id), 0) FROM markets").pluck();
  const firstOutcome = db.prepare("SELECT min(id) FROM outcomes WHERE market_id = ?").pluck();
  const insertOutcome = db.prepare("INSERT INTO outcomes VALUES (?, ?, ?, ?, NULL, 0, NULL)");
  return (write) => {
    const { slug, question, description, category, eventId, outcomes, opensAt, closesAt, proposedBy, at } = write;
    const found = marketBySlug.get(slug);
    if (found !== undefined) return { ...existing(found), firstOutcomeId: Number(firstOutcome.get(found)) };
    const isOpen = proposedBy === null;
    const last = isOpen ? LAST_OUTCOME_ID : LAST_PROPOSED_OUTCOME_ID;
    if (isOpen) checkRoom(context, outcomes.length);
    const first = Number(lastMarket.get()) < last ? context.outcomeIds.allocate(outcomes.length, last) : null;
    if (first === null) {
      throw new WriteRefused(`the exchange is at its maximum number of ${isOpen ? "markets" : "proposals"}`);
    }
    const status = isOpen ? MarketStatus.open : MarketStatus.proposed;
    const row = [slug, question, description, category, eventId, status, opensAt, closesAt, proposedBy, at];
    const id = Number(insertMarket.run(...row).lastInsertRowid);
    outcomes.forEach((name, position) => {
      insertOutcome.run(first + position, id, position, name);
    });
    insertMarketWords.run(id, indexedWords(question, description, category, slug, ...outcomes));
    context.addMarket(id, first, outcomes.length);
    if (isOpen) context.openMarket(id);
    return { id, created: true, firstOutcomeId: first };
  };
}

function prepareRefuseMarket(db: Database.Database, context: WriteContext): MarketWrites["refuseMarket"] {
  const refuseMarket = db.prepare(
    `UPDATE markets SET status = ${MarketStatus.rejected}, decided_at = ?, decision_note = ? WHERE id = ?`,
  );
  const renumberOutcomes = db.prepare("UPDATE outcomes SET id = ? + position WHERE market_id = ?");
  const marketStatus = db.prepare("SELECT status FROM markets WHERE id = ?").pluck();
  return ({ marketId, note, at }) => {
    assert(marketStatus.get(marketId) === MarketStatus.proposed, "only a proposal can be refused");
    const { first, count } = context.outcomesOf(marketId);
    refuseMarket.run(at, note, marketId);
    renumberOutcomes.run(refusedOutcomeId(marketId), marketId);
    context.outcomeIds.free(first, count);
    context.forgetMarket(marketId);
    return { id: marketId, created: true };
  };
}

function prepareOpenMarket(db: Database.Database, context: WriteContext): MarketWrites["openMarket"] {
  const openMarket = db.prepare(
    `UPDATE markets SET status = ${MarketStatus.open}, opens_at = @at, decided_at = @at, decision_note = @note
     WHERE id = @marketId`,
  );
  return ({ marketId, note, at }) => {
    checkRoom(context, context.outcomesOf(marketId).count);
    openMarket.run({ marketId, note, at });
    context.openMarket(marketId);
    return { id: marketId, created: true };
  };
}

function prepareDescribeMarket(db: Database.Database): MarketWrites["describeMarket"] {
  const describeMarket = db.prepare("UPDATE markets SET description = ?, category = ?, closes_at = ? WHERE id = ?");
  const marketTexts = db
    .prepare(
      `SELECT question, description, category, slug,
         (SELECT group_concat(name, ' ') FROM outcomes WHERE market_id = markets.id) FROM markets WHERE id = ?`,
    )
    .raw();
  const removeMarketWords = db.prepare("DELETE FROM market_words WHERE rowid = ?");
  const insertMarketWords = db.prepare("INSERT INTO market_words (rowid, words) VALUES (?, ?)");
  return ({ marketId, description, category, closesAt }) => {
    describeMarket.run(description, category, closesAt, marketId);
    removeMarketWords.run(marketId);
    insertMarketWords.run(marketId, indexedWords(...(marketTexts.get(marketId) as (string | null)[])));
    return { id: marketId, created: true };
  };
}

export function prepareMarketWrites(db: Database.Database, context: WriteContext): MarketWrites {
  return {
    createEvent: prepareCreateEvent(db),
    createMarket: prepareCreateMarket(db, context),
    openMarket: prepareOpenMarket(db, context),
    refuseMarket: prepareRefuseMarket(db, context),
    describeMarket: prepareDescribeMarket(db),
  };
}
