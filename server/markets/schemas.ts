/** Shapes of the life of a market: proposals, what operators make and decide, resolutions. */
import Type from "typebox";
import { MARKET_STATUSES } from "../../engine/constants.ts";
import { FULL_PRICE_BPS, MAX_OUTCOMES, MIN_OUTCOMES } from "../../engine/limits.ts";
import { closed, Id, MarketSchema, names, nullable, page, pageOf, Time } from "../http/schemas.ts";
import { line, note, optional, text } from "../http/text-schemas.ts";
import { Approval } from "../wallet/schemas.ts";
import {
  MAX_CATEGORY_LENGTH,
  MAX_DESCRIPTION_LENGTH,
  MAX_OUTCOME_NAME_LENGTH,
  MAX_QUESTION_LENGTH,
  MAX_SLUG_LENGTH,
  MIN_QUESTION_LENGTH,
} from "./limits.ts";
import { SLUG_PATTERN } from "./slugs.ts";

const Slug = Type.String({ maxLength: MAX_SLUG_LENGTH, pattern: SLUG_PATTERN });
const Title = line(MIN_QUESTION_LENGTH, MAX_QUESTION_LENGTH);
const Category = line(1, MAX_CATEGORY_LENGTH);
const Description = text(MAX_DESCRIPTION_LENGTH);
const Payout = Type.Integer({ minimum: 0, maximum: FULL_PRICE_BPS, description: "basis points of 1 USDC a share" });

// ---------------------------------------------------------------- requests

/** Without a slug one is made of the question. */
export const NewMarket = closed({
  question: Title,
  description: optional(Description),
  category: optional(Category),
  outcomes: Type.Array(line(1, MAX_OUTCOME_NAME_LENGTH), { minItems: MIN_OUTCOMES, maxItems: MAX_OUTCOMES }),
  closes_at: optional(Time),
  event_id: optional(Id),
  slug: optional(Slug),
});
export const NewEvent = closed({
  slug: Slug,
  title: Title,
  category: optional(Category),
  closes_at: optional(Time),
});
/** What isn't given stays; null clears. */
export const MarketChanges = closed({
  description: optional(Description),
  category: optional(Category),
  closes_at: optional(Time),
});
/** By what each outcome pays, or by the one that pays all. */
export const Resolution = closed({
  payouts: Type.Optional(
    Type.Array(Payout, { minItems: MIN_OUTCOMES, maxItems: MAX_OUTCOMES, description: "one an outcome: 10000 in all" }),
  ),
  outcome_id: Type.Optional(Id),
  note,
});
export const ProposalsQuery = closed({ ...page, status: Type.Optional(names(MARKET_STATUSES)) });

// ---------------------------------------------------------------- answers

const Decision = nullable(closed({ note: nullable(Type.String()), decided_at: Time }));

export const Proposals = pageOf(closed({ market: MarketSchema, decision: Decision }));
/** As operators see it. */
export const MarketRecord = closed({
  ...MarketSchema.properties,
  proposed_by: nullable(Id),
  decision: Decision,
  approval: nullable(Approval),
});
/** The market as it is now, and the first approval where a second one is awaited. */
export const Settlement = closed({ market: MarketSchema, approval: nullable(Approval) });
