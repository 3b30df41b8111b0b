/** The facts of a write that needs none from the tables. */
import type { Facts } from "./types.ts";

export const NO_FACTS: Facts = { payment: null, deposit: null, withdrawal: null, holders: null };
