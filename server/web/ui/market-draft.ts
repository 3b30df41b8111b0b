import {
  MAX_OUTCOME_NAME_LENGTH,
  MAX_QUESTION_LENGTH,
  MAX_SLUG_LENGTH,
  MIN_QUESTION_LENGTH,
} from "../../markets/limits.ts";
import { parseLocalTime } from "../format.ts";
import type { NewMarket } from "../types.ts";
import { categoryProblem, descriptionProblem, futureProblem, lineProblem, trimmedOrNull } from "./validation.ts";

export interface DraftOutcome {
  /** Stays with the field when others go. */
  readonly key: number;
  readonly name: string;
}

export interface MarketDraft {
  readonly question: string;
  readonly description: string;
  readonly category: string;
  readonly outcomes: readonly DraftOutcome[];
  /** Of a field for date and time. */
  readonly closesAt: string;
  /** An id, "" for none. */
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
  /** One an outcome. */
  readonly outcomes: readonly (string | null)[];
}

/** The exchange takes two names for one where they look the same. */
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
      return problem ?? (names.indexOf(names[i]!) < i ? "Another outcome has this name." : null);
    }),
  };
}

export function slugProblem(slug: string): string | null {
  if (slug.length > MAX_SLUG_LENGTH) return `At most ${MAX_SLUG_LENGTH} characters.`;
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(slug)) return "Small letters a to z, digits, and single hyphens between them.";
  return /^([0-9]+|proposals)$/.test(slug) ? "This one would be taken for something else." : null;
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
