/** What follows from a market's state. */
import type { Market, Outcome } from "./types.ts";

/** Two outcomes: the second is the opposite of the first. */
export const isBinary = ({ outcomes }: Pick<Market, "outcomes">): boolean => outcomes.length === 2;

/** It has a book: orders rest in it, traded or halted. */
export const isRunning = ({ status }: Pick<Market, "status">): boolean => status === "open" || status === "halted";

/** The outcome that pays in full; undefined without one, or before the market is resolved. */
export const winnerOf = ({ outcomes, resolution }: Pick<Market, "outcomes" | "resolution">): Outcome | undefined =>
  outcomes.find(({ id }) => id === resolution?.outcome_id);
