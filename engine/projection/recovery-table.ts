/**
 * What a start does with the exchange's two files, by what each of them has: the one place that decides. recover.ts and the
 * server look a case up, the crash tests go through those that an operator can bring about, and docs/operations.md prints
 * them.
 */

/** What journal.db is, beside the tables. */
export const JOURNAL_STATES = {
  none: "no `journal.db`",
  empty: "without a batch",
  same: "ends at the tables' last batch",
  behind: "ends before it",
  ahead: "ends after it",
  anotherExchange: "of another exchange",
  hashDiffers: "another batch in its place",
} as const;
export type JournalState = keyof typeof JOURNAL_STATES;

/** What exchange.db is. */
export const TABLES_STATES = {
  none: "no `exchange.db`",
  new: "without a batch",
  beforeLog: "of a version before the log",
  used: "with batches",
} as const;
export type TablesState = keyof typeof TABLES_STATES;

/** What the messages name. */
interface RecoveryFacts {
  /** The last batch that the tables include, and the last one of journal.db; 0 for none. */
  readonly projected: number;
  readonly last: number;
}

/**
 * start: an exchange without a past begins, or the log goes on where the tables end. begin: the log begins behind tables that
 * have no batch. project: the tables follow the rest of the log. adopt: new tables take over the log's exchange, and follow
 * all of it. rebuild: the tables are built from the log. refuse: the files don't belong together.
 */
export type Decision =
  | { readonly does: "start" | "begin" | "project" | "adopt" | "rebuild" }
  | { readonly does: "refuse"; readonly why: (facts: RecoveryFacts) => string };

const RESTORE = "restore both files from one backup";

const START: Decision = { does: "start" };
const BEGIN: Decision = { does: "begin" };
const PROJECT: Decision = { does: "project" };
const ADOPT: Decision = { does: "adopt" };
const REBUILD: Decision = { does: "rebuild" };
const NEWER: Decision = {
  does: "refuse",
  why: ({ projected, last }) => `exchange.db contains batch ${projected}, journal.db ends at ${last}: ${RESTORE}`,
};
const STRANGERS: Decision = {
  does: "refuse",
  why: () => `exchange.db and journal.db belong to different exchanges: ${RESTORE}`,
};
const CHANGED: Decision = {
  does: "refuse",
  why: ({ projected }) => `batch ${projected} in exchange.db isn't the one in journal.db: ${RESTORE}`,
};
/** Tables without a batch can't be compared: any log is ahead of them. */
const NEVER = null;

type Cells = Readonly<Record<TablesState, Decision | null>>;

/** By what journal.db is, then by what exchange.db is. */
export const RECOVERY: Readonly<Record<JournalState, Cells>> = {
  none: { none: START, new: START, beforeLog: BEGIN, used: NEWER },
  empty: { none: START, new: START, beforeLog: BEGIN, used: NEWER },
  same: { none: NEVER, new: NEVER, beforeLog: START, used: START },
  behind: { none: NEVER, new: NEVER, beforeLog: NEWER, used: NEWER },
  ahead: { none: REBUILD, new: ADOPT, beforeLog: PROJECT, used: PROJECT },
  anotherExchange: { none: NEVER, new: NEVER, beforeLog: STRANGERS, used: STRANGERS },
  hashDiffers: { none: NEVER, new: NEVER, beforeLog: CHANGED, used: CHANGED },
};
