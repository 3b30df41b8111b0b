/** Creates events and markets, decides proposals, and keeps the search index of their texts. */
import type Database from "better-sqlite3";
import { MarketStatus } from "../../constants.ts";
import type { WriteOf } from "../../log/writes.ts";
import { assert } from "../../util/assert.ts";
import { refusedOutcomeId } from "../outcome-ids.ts";
import { indexedWords } from "../search-words.ts";
import type { WriteContext } from "./context.ts";

export interface MarketWrites {
  createEvent(write: WriteOf<"createEvent">): void;
  createMarket(write: WriteOf<"createMarket">): void;
  openMarket(write: WriteOf<"openMarket">): void;
  refuseMarket(write: WriteOf<"refuseMarket">): void;
  describeMarket(write: WriteOf<"describeMarket">): void;
}

function prepareCreateEvent(db: Database.Database): MarketWrites["createEvent"] {
  const insertEvent = db.prepare(
    "INSERT INTO events (id, slug, title, category, closes_at, created_at) VALUES (?, ?, ?, ?, ?, ?)",
  );
  const insertEventWords = db.prepare("INSERT INTO event_words (rowid, words) VALUES (?, ?)");
  return ({ id, slug, title, category, closesAt, at }) => {
    insertEvent.run(id, slug, title, category, closesAt, at);
    insertEventWords.run(id, indexedWords(title, category, slug));
  };
}

function prepareCreateMarket(db: Database.Database, context: WriteContext): MarketWrites["createMarket"] {
  const insertMarket = db.prepare(
    `INSERT INTO markets (id, slug, question, description, category, event_id, status, sets, opens_at, closes_at,
       proposed_by, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)`,
  );
  const insertMarketWords = db.prepare("INSERT INTO market_words (rowid, words) VALUES (?, ?)");
  const insertOutcome = db.prepare("INSERT INTO outcomes VALUES (?, ?, ?, ?, NULL, 0, NULL)");
  return (write) => {
    const { id, firstOutcomeId, slug, question, description, category, eventId, outcomes, proposedBy } = write;
    const status = proposedBy === null ? MarketStatus.open : MarketStatus.proposed;
    const texts = [slug, question, description, category];
    insertMarket.run(id, ...texts, eventId, status, write.opensAt, write.closesAt, proposedBy, write.at);
    outcomes.forEach((name, position) => {
      insertOutcome.run(firstOutcomeId + position, id, position, name);
    });
    insertMarketWords.run(id, indexedWords(question, description, category, slug, ...outcomes));
    context.addMarket(id, firstOutcomeId, outcomes.length);
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
    refuseMarket.run(at, note, marketId);
    renumberOutcomes.run(refusedOutcomeId(marketId), marketId);
    context.forgetMarket(marketId);
  };
}

function prepareOpenMarket(db: Database.Database): MarketWrites["openMarket"] {
  const openMarket = db.prepare(
    `UPDATE markets SET status = ${MarketStatus.open}, opens_at = @at, decided_at = @at, decision_note = @note
     WHERE id = @marketId AND status = ${MarketStatus.proposed}`,
  );
  return ({ marketId, note, at }) => {
    assert(openMarket.run({ marketId, note, at }).changes === 1, "only a proposal can be opened");
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
  const removePicture = db.prepare("DELETE FROM market_pictures WHERE market_id = ?");
  const setPicture = db.prepare("INSERT OR REPLACE INTO market_pictures (market_id, hash, webp) VALUES (?, ?, ?)");
  return ({ marketId, description, category, closesAt, picture }) => {
    if (picture === null) removePicture.run(marketId);
    else if (picture !== undefined) setPicture.run(marketId, picture.hash, picture.webp);
    describeMarket.run(description, category, closesAt, marketId);
    removeMarketWords.run(marketId);
    insertMarketWords.run(marketId, indexedWords(...(marketTexts.get(marketId) as (string | null)[])));
  };
}

export function prepareMarketWrites(db: Database.Database, context: WriteContext): MarketWrites {
  return {
    createEvent: prepareCreateEvent(db),
    createMarket: prepareCreateMarket(db, context),
    openMarket: prepareOpenMarket(db),
    refuseMarket: prepareRefuseMarket(db, context),
    describeMarket: prepareDescribeMarket(db),
  };
}
