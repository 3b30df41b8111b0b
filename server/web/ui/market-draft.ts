/** The draft of a new market: its form state, validation, and the request built from it. No markup. */
import {
  MAX_OUTCOME_NAME_LENGTH,
  MAX_QUESTION_LENGTH,
  MAX_SLUG_LENGTH,
  MIN_QUESTION_LENGTH,
} from "../../markets/limits.ts";
import { parseLocalTime } from "../parse.ts";
import type { NewMarket } from "../types.ts";
import { categoryProblem, descriptionProblem, futureProblem, lineProblem, trimmedOrNull } from "./validation.ts";

export interface DraftOutcome {
  /** Stable while other outcomes are removed. */
  readonly key: number;
  readonly name: string;
}

export interface MarketDraft {
  readonly question: string;
  readonly description: string;
  readonly category: string;
  readonly outcomes: readonly DraftOutcome[];
  /** Value of a datetime-local field. */
  readonly closesAt: string;
  /** Event id, "" for none. */
  readonly eventId: string;
  readonly slug: string;
}

export function emptyDraft(): MarketDraft {
  const outcomes = ["Yes", "No"].map((name, key) => ({ key, name }));
  return { question: "", description: "", category: "", outcomes, closesAt: "", eventId: "", slug: "" };
}

export interface Problems {
  readonly question: string | null;
  readonly description: string | null;
  readonly category: string | null;
  readonly closesAt: string | null;
  readonly slug: string | null;
  /** By outcome. */
  readonly outcomes: readonly (string | null)[];
}

/** The server rejects outcome names that look the same. */
const folded = (name: string): string => name.trim().normalize("NFKC").toLowerCase();

export function problemsOf(draft: MarketDraft): Problems {
  const names = draft.outcomes.map(({ name }) => folded(name));
  return {
    question: lineProblem(draft.question.trim(), MIN_QUESTION_LENGTH, MAX_QUESTION_LENGTH),
    description: descriptionProblem(draft.description),
    category: categoryProblem(draft.category),
    closesAt: futureProblem(draft.closesAt),
    slug: draft.slug === "" ? null : slugProblem(draft.slug),
    outcomes: draft.outcomes.map(({ name }, i) => {
      const problem = lineProblem(name.trim(), 1, MAX_OUTCOME_NAME_LENGTH);
      return problem ?? (names.indexOf(folded(name)) < i ? "Another outcome already has this name." : null);
    }),
  };
}

export function slugProblem(slug: string): string | null {
  if (slug.length > MAX_SLUG_LENGTH) return `At most ${MAX_SLUG_LENGTH} characters.`;
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(slug)) return "Use lowercase letters, digits, and single hyphens between them.";
  return /^([0-9]+|proposals)$/.test(slug) ? "This slug is reserved." : null;
}

export function hasProblems({ outcomes, ...fields }: Problems): boolean {
  return [...outcomes, ...Object.values(fields)].some((problem) => problem !== null);
}

export function newMarketOf(draft: MarketDraft): NewMarket {
  return {
    question: draft.question.trim(),
    description: trimmedOrNull(draft.description),
    category: trimmedOrNull(draft.category),
    outcomes: draft.outcomes.map(({ name }) => name.trim()),
    closes_at: parseLocalTime(draft.closesAt),
    event_id: draft.eventId === "" ? null : Number(draft.eventId),
    slug: trimmedOrNull(draft.slug),
  };
}
