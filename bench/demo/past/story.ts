/**
 * What happened in the demo's past: how the chances of each open market came about, which markets have ended and how, and
 * what the person who signs in did. Everything counts in days before the end.
 */
import { MARKETS } from "../catalog.ts";

/** How long the past is. */
export const PAST_DAYS = 90;

export interface StoryPoint {
  readonly daysAgo: number;
  /** By outcome, with any sum. */
  readonly chances: readonly number[];
}

export interface MarketStory {
  readonly slug: string;
  readonly points: readonly StoryPoint[];
  /** Of the noise, relative to the usual. */
  readonly volatility: number;
  readonly weight: number;
}

/** The time of a jump, days. */
const AT_ONCE = 0.01;

const at = (daysAgo: number, ...chances: number[]): readonly StoryPoint[] => [{ daysAgo, chances }];
/** News: from some chances to others at once. */
const news = (daysAgo: number, before: readonly number[], after: readonly number[]): readonly StoryPoint[] => [
  { daysAgo, chances: before },
  { daysAgo: daysAgo - AT_ONCE, chances: after },
];

/** The stories of the open markets, which end at the catalog's chances. */
const OPEN: Readonly<Record<string, { readonly volatility?: number; readonly points: readonly StoryPoint[] }>> = {
  "election-largest-party": {
    points: [
      ...at(90, 31, 37, 21, 11),
      ...news(61.3, [33, 35, 21, 11], [42, 26, 21, 11]),
      ...at(40, 40, 29, 20, 11),
      ...at(18, 35, 32, 21, 12),
    ],
  },
  "election-turnout-above-70": { points: [...at(90, 56, 44), ...at(52, 51, 49), ...at(20, 46, 54)] },
  "election-called-early": {
    points: [...at(90, 7, 93), ...news(33.4, [9, 91], [33, 67]), ...at(21, 27, 73)],
  },
  // From 10 to 90 %.
  "central-bank-next-meeting": {
    points: [
      ...at(90, 10, 83, 7),
      ...news(66.2, [14, 80, 6], [37, 58, 5]),
      ...at(45, 46, 50, 4),
      ...news(31.6, [51, 45, 4], [64, 33, 3]),
      ...news(11.7, [70, 27, 3], [86, 12, 2]),
    ],
  },
  "inflation-below-2": {
    points: [...at(90, 53, 47), ...news(58.6, [51, 49], [42, 58]), ...news(28.6, [44, 56], [34, 66])],
  },
  "champions-cup-winner": {
    volatility: 1.3,
    points: [
      ...at(90, 17, 24, 20, 17, 12, 10),
      ...news(69.2, [17, 24, 20, 17, 12, 10], [21, 23, 21, 14, 12, 9]),
      ...news(48.2, [21, 23, 21, 14, 12, 9], [23, 25, 17, 15, 11, 9]),
      ...news(27.2, [24, 24, 17, 15, 11, 9], [27, 21, 18, 14, 12, 8]),
    ],
  },
  "champions-cup-final-extra-time": { volatility: 0.7, points: [...at(90, 26, 74), ...at(45, 29, 71)] },
  "bitcoin-new-high": {
    volatility: 1.5,
    points: [
      ...at(90, 33, 67),
      ...at(77, 54, 46),
      ...news(71.5, [52, 48], [38, 62]),
      ...at(58, 30, 70),
      ...at(43, 63, 37),
      ...at(29, 45, 55),
      ...news(13.8, [47, 53], [59, 41]),
    ],
  },
  "moon-landing-this-decade": { volatility: 0.7, points: [...at(90, 52, 48), ...news(40.5, [54, 46], [62, 38])] },
  "warmest-year-on-record": {
    points: [...at(90, 49, 51), ...news(75.4, [50, 50], [57, 43]), ...news(44.4, [58, 42], [62, 38])],
  },
  "most-valuable-company": {
    points: [...at(90, 38, 31, 22, 9), ...news(63.1, [38, 31, 22, 9], [45, 27, 20, 8]), ...at(30, 43, 28, 21, 8)],
  },
  "best-picture-not-in-english": { points: [...at(90, 24, 76), ...at(60, 18, 82), ...news(24.9, [16, 84], [10, 90])] },
};

export const OPEN_STORIES: readonly MarketStory[] = MARKETS.map(({ slug, outcomes, weight }) => {
  const { points = at(PAST_DAYS, ...Object.values(outcomes)), volatility = 1 } = OPEN[slug] ?? {};
  return { slug, weight, volatility, points: [...points, ...at(0, ...Object.values(outcomes))] };
});

/** A market of the past. It closes at the last point of its story, and an operator ends it some hours later. */
export interface EndedMarket extends MarketStory {
  readonly question: string;
  readonly description: string;
  readonly category: string;
  /** The slug of its event. */
  readonly event?: string;
  readonly outcomes: readonly string[];
  /** The outcome that paid; null: the market was voided. */
  readonly winner: number | null;
  readonly note: string;
}

export const ENDED_MARKETS: readonly EndedMarket[] = [
  {
    slug: "madrid-in-the-final",
    question: "Will Madrid reach the final of the Champions Cup?",
    description: "Pays on Yes if Madrid wins its semi-final.",
    category: "sports",
    event: "champions-cup",
    outcomes: ["Yes", "No"],
    points: [...at(88, 44, 56), ...news(69.2, [45, 55], [57, 43]), ...news(52.25, [61, 39], [94, 6]), ...at(52, 98, 2)],
    volatility: 1.3,
    weight: 4,
    winner: 0,
    note: "Madrid won 3:1 over both legs.",
  },
  {
    slug: "energy-price-cap-rises",
    question: "Will the energy price cap rise next quarter?",
    description: "Pays on Yes if the regulator announces a higher cap.",
    category: "economics",
    outcomes: ["Yes", "No"],
    points: [
      ...at(82, 58, 42),
      ...at(60, 63, 37),
      ...news(47.6, [55, 45], [30, 70]),
      ...news(41.25, [22, 78], [4, 96]),
      ...at(41, 2, 98),
    ],
    volatility: 1,
    weight: 2,
    winner: 1,
    note: "The regulator left the cap as it was.",
  },
  {
    slug: "northfield-by-election",
    question: "Who will win the Northfield by-election?",
    description: "Pays on the candidate whom the returning officer declares elected.",
    category: "politics",
    event: "general-election",
    outcomes: ["Labour", "Conservatives", "Liberals"],
    points: [
      ...at(74, 40, 38, 22),
      ...news(50.3, [42, 35, 23], [36, 27, 37]),
      ...news(28.25, [31, 21, 48], [3, 2, 95]),
      ...at(28, 1, 1, 98),
    ],
    volatility: 1.2,
    weight: 3,
    winner: 2,
    note: "Declared: Liberals 14,206 votes, Labour 11,871, Conservatives 9,020.",
  },
  {
    slug: "bitcoin-month-up",
    question: "Will bitcoin end the month above its start?",
    description: "Pays on Yes if the last trade of the month is above the first.",
    category: "crypto",
    outcomes: ["Yes", "No"],
    points: [...at(60, 50, 50), ...at(50, 39, 61), ...at(40, 68, 32), ...at(30.3, 90, 10), ...at(30, 98, 2)],
    volatility: 1.5,
    weight: 4,
    winner: 0,
    note: "Up 6.2 %.",
  },
  {
    slug: "phone-before-the-fair",
    question: "Will the new phone be announced before the fair?",
    description: "Pays on Yes if the maker announces it before the fair opens.",
    category: "technology",
    outcomes: ["Yes", "No"],
    points: [
      ...at(44, 52, 48),
      ...news(30.4, [56, 44], [74, 26]),
      ...news(19.3, [70, 30], [35, 65]),
      ...at(12.4, 10, 90),
      ...at(12, 2, 98),
    ],
    volatility: 1,
    weight: 2,
    winner: 1,
    note: "The fair has opened without it.",
  },
  {
    slug: "charity-match-attendance",
    question: "Will the charity match draw more than 60,000 people?",
    description: "Pays on Yes if the organizers count more than 60,000. Void if the match isn't played.",
    category: "sports",
    outcomes: ["Yes", "No"],
    points: [...at(38, 47, 53), ...at(24, 58, 42), ...at(18, 55, 45)],
    volatility: 1,
    weight: 1,
    winner: null,
    note: "The match was called off.",
  },
];

/** What the person who signs in traded, at the prices of the day: a market order with a bound. */
export interface PersonalTrade {
  readonly daysAgo: number;
  readonly slug: string;
  readonly outcome: number;
  readonly side: "buy" | "sell";
  readonly quantity: number;
}

const trade = (
  daysAgo: number,
  side: PersonalTrade["side"],
  quantity: number,
  slug: string,
  outcome = 0,
): PersonalTrade => ({ daysAgo, side, quantity, slug, outcome });

export const PERSONAL_TRADES: readonly PersonalTrade[] = [
  trade(86.31, "buy", 400, "madrid-in-the-final"),
  trade(79.42, "buy", 300, "energy-price-cap-rises"),
  trade(73.65, "buy", 180, "bitcoin-new-high"),
  trade(68.27, "buy", 250, "northfield-by-election", 2),
  trade(65.94, "buy", 600, "central-bank-next-meeting"),
  trade(58.13, "buy", 220, "bitcoin-month-up"),
  trade(55.52, "sell", 150, "madrid-in-the-final"),
  trade(52.86, "buy", 120, "champions-cup-winner"),
  trade(47.34, "sell", 100, "energy-price-cap-rises"),
  trade(42.91, "sell", 180, "bitcoin-new-high"),
  trade(41.78, "buy", 350, "election-largest-party"),
  trade(37.25, "buy", 200, "phone-before-the-fair"),
  trade(36.63, "buy", 120, "charity-match-attendance"),
  trade(33.16, "buy", 260, "election-called-early"),
  trade(31.22, "sell", 200, "central-bank-next-meeting"),
  trade(26.74, "buy", 200, "most-valuable-company"),
  trade(22.45, "sell", 160, "election-called-early"),
  trade(19.12, "sell", 80, "phone-before-the-fair"),
  trade(15.38, "buy", 300, "bitcoin-new-high"),
  trade(11.26, "buy", 150, "central-bank-next-meeting"),
  trade(9.47, "buy", 140, "moon-landing-this-decade"),
  trade(6.21, "sell", 100, "election-largest-party"),
  trade(3.33, "buy", 90, "champions-cup-winner", 2),
  trade(1.18, "buy", 110, "inflation-below-2", 1),
  trade(0.39, "sell", 120, "bitcoin-new-high"),
];
