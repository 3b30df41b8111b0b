/** The shapes of notifications, of their settings, and of price alerts. */
import Type from "typebox";
import { about, closed, Id, names, nullable, Time } from "../http/schemas.ts";
import { Price, SideSchema } from "../markets/schemas.ts";
import { MAX_NOTIFICATIONS, NOTIFICATION_DAYS } from "./limits.ts";

const KINDS = ["fill", "resolution", "deposit", "withdrawal", "alert"] as const;
const DIRECTIONS = ["above", "below"] as const;
const Direction = names(DIRECTIONS, {
  description: "fires at a trade at this price or above it, or at it or below it",
});
/** A price of several fills: their average. */
const AveragePrice = Type.Number({
  minimum: 0,
  maximum: 10_000,
  description: "basis points; average of an order's fills",
});

export const Notification = closed({
  kind: names(KINDS),
  at: about(Time, "ms since the Unix epoch: when it happened"),
  market_id: nullable(Id),
  outcome_id: nullable(Id),
  order_id: nullable(Id),
  side: nullable(SideSchema),
  quantity: nullable(Type.Integer({ minimum: 1, description: "shares that were filled, or held at the resolution" })),
  price: nullable(AveragePrice),
  amount: nullable(
    Type.Integer({ description: "micro-USDC: paid by a resolution, deposited (negative: taken back) or withdrawn" }),
  ),
  profit: nullable(Type.Integer({ description: "micro-USDC: of a resolution" })),
  status: nullable(names(["paid", "refused"], { description: "of a withdrawal" })),
  direction: nullable(names(DIRECTIONS, { description: "of a price alert" })),
});

export const Notifications = closed({
  items: Type.Array(Notification, {
    description: `the latest first: ${MAX_NOTIFICATIONS} of the last ${NOTIFICATION_DAYS} days at most`,
  }),
  unseen: Type.Integer({ minimum: 0, description: "how many of the items happened after seen_at" }),
  seen_at: Time,
});

export const SeenNotifications = closed({
  seen_at: about(Time, "ms since the Unix epoch: what happened until then was seen"),
});

const topics = {
  fills: Type.Boolean({ description: "fills of resting orders" }),
  resolutions: Type.Boolean({ description: "resolved and voided markets" }),
  payments: Type.Boolean({ description: "deposits and decided withdrawals" }),
  alerts: Type.Boolean({ description: "price alerts" }),
};
export const NotificationSettings = closed({
  page: about(closed(topics), "what the list of notifications has"),
  mail: about(
    closed(topics),
    "what is mailed, to a verified email address; mails about withdrawals are sent in any case, at once",
  ),
});
const TopicsChange = Type.Object(
  {
    fills: Type.Optional(topics.fills),
    resolutions: Type.Optional(topics.resolutions),
    payments: Type.Optional(topics.payments),
    alerts: Type.Optional(topics.alerts),
  },
  { additionalProperties: false, minProperties: 1, description: "the topics to change: one at least" },
);
export const NotificationSettingsChange = Type.Object(
  { page: Type.Optional(TopicsChange), mail: Type.Optional(TopicsChange) },
  { additionalProperties: false, minProperties: 1 },
);

export const NewPriceAlert = closed({ outcome_id: Id, direction: Direction, price: Price });

export const PriceAlert = closed({
  id: Id,
  market_id: Id,
  outcome_id: Id,
  direction: Direction,
  price: Price,
  created_at: Time,
});
export const PriceAlerts = closed({ items: Type.Array(PriceAlert, { description: "the latest first" }) });
