/**
 * The demo's markets: their questions, each outcome's initial chance, around which its price moves, and their share of
 * the trading. Times are relative to the first start, so that no market of a fresh demo has closed.
 */

interface DemoEvent {
  readonly slug: string;
  readonly title: string;
  readonly category: string;
}

export interface DemoMarket {
  readonly slug: string;
  readonly question: string;
  readonly description: string;
  readonly category: string;
  readonly event?: string;
  readonly closesInDays: number;
  /** By name, in percent; they add up to 100. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** How often takers pick the market, relative to the others. */
  readonly weight: number;
}

export const EVENTS: readonly DemoEvent[] = [
  { slug: "general-election", title: "The next general election", category: "politics" },
  { slug: "central-bank", title: "The central bank's year", category: "economics" },
  { slug: "champions-cup", title: "Champions Cup", category: "sports" },
];

export const MARKETS: readonly DemoMarket[] = [
  {
    slug: "election-largest-party",
    question: "Which party will win the most seats?",
    description: "Pays on the party with the most seats by the official result. A tie is split.",
    category: "politics",
    event: "general-election",
    closesInDays: 140,
    outcomes: { Labour: 38, Conservatives: 29, Liberals: 21, Greens: 12 },
    weight: 5,
  },
  {
    slug: "election-turnout-above-70",
    question: "Will turnout be above 70 %?",
    description: "Pays on Yes if the election authority's final figure is above 70.0 %.",
    category: "politics",
    event: "general-election",
    closesInDays: 140,
    outcomes: { Yes: 44, No: 56 },
    weight: 2,
  },
  {
    slug: "election-called-early",
    question: "Will the election be called early?",
    description: "Pays on Yes if it is held a month or more before its regular date.",
    category: "politics",
    event: "general-election",
    closesInDays: 110,
    outcomes: { Yes: 17, No: 83 },
    weight: 1,
  },
  {
    slug: "central-bank-next-meeting",
    question: "What will the central bank do at its next meeting?",
    description: "Pays on what the statement after the meeting says of the key rate.",
    category: "economics",
    event: "central-bank",
    closesInDays: 24,
    outcomes: { Cut: 90, Hold: 8, Raise: 2 },
    weight: 4,
  },
  {
    slug: "inflation-below-2",
    question: "Will inflation be below 2 % at the end of the year?",
    description: "Pays on Yes if the statistical office's first figure for December is below 2.0 %.",
    category: "economics",
    event: "central-bank",
    closesInDays: 320,
    outcomes: { Yes: 36, No: 64 },
    weight: 2,
  },
  {
    slug: "champions-cup-winner",
    question: "Who will win the Champions Cup?",
    description: "Pays on the club that is awarded the cup.",
    category: "sports",
    event: "champions-cup",
    closesInDays: 60,
    outcomes: { Madrid: 27, Manchester: 22, Munich: 18, Paris: 14, Milan: 11, Another: 8 },
    weight: 6,
  },
  {
    slug: "champions-cup-final-extra-time",
    question: "Will the final go to extra time?",
    description: "Pays on Yes if the final is undecided after 90 minutes.",
    category: "sports",
    event: "champions-cup",
    closesInDays: 60,
    outcomes: { Yes: 28, No: 72 },
    weight: 2,
  },
  {
    slug: "bitcoin-new-high",
    question: "Will bitcoin make a new all-time high this quarter?",
    description: "Pays on Yes if a trade on a major exchange is above every earlier one.",
    category: "crypto",
    closesInDays: 75,
    outcomes: { Yes: 48, No: 52 },
    weight: 5,
  },
  {
    slug: "moon-landing-this-decade",
    question: "Will people land on the Moon this decade?",
    description: "Pays on Yes if at least one living person stands on the Moon.",
    category: "science",
    closesInDays: 900,
    outcomes: { Yes: 61, No: 39 },
    weight: 3,
  },
  {
    slug: "warmest-year-on-record",
    question: "Will this year be the warmest on record?",
    description: "Pays on Yes if the mean surface temperature is above that of every earlier year.",
    category: "climate",
    closesInDays: 380,
    outcomes: { Yes: 66, No: 34 },
    weight: 2,
  },
  {
    slug: "most-valuable-company",
    question: "Which company will be the most valuable at the end of the year?",
    description: "Pays on the company with the highest market capitalization at the year's last close.",
    category: "technology",
    closesInDays: 300,
    outcomes: { Nvidia: 46, Microsoft: 26, Apple: 20, Another: 8 },
    weight: 4,
  },
  {
    slug: "best-picture-not-in-english",
    question: "Will a film that is not in English win Best Picture?",
    description: "Pays on Yes if most of its dialogue is in another language.",
    category: "culture",
    closesInDays: 90,
    outcomes: { Yes: 9, No: 91 },
    weight: 1,
  },
];
