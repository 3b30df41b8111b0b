/** What follows from the settings of a copied log. */
import type { ReplicationSettings } from "./types.ts";

/** True where nothing is shown before other boxes have it. @param settings null on a single box */
export const holdsLog = (settings: ReplicationSettings | null): boolean => settings !== null && settings.ack !== "none";

/** What speaks against a takeover by itself; null where nothing does. */
export const onlyByCommand = ({ takeover }: ReplicationSettings): string | null =>
  takeover === "manual" ? "STANDBY_TAKEOVER is manual: only by command" : null;

/** The names of an exchange's stream and of its subjects. */
export interface StreamNames {
  readonly stream: string;
  /** The stream's only one. */
  readonly subject: string;
  /** What boxes say of themselves: each on a subject of its own below this one. */
  readonly beat: string;
  /** What a standby has on its disk, likewise. */
  readonly at: string;
  /** Requests to a box, likewise. */
  readonly ask: string;
  /** Requests for the pieces of a copy, likewise. */
  readonly copy: string;
  /** Every box takes calls: a start learns at once that there is none. */
  readonly call: string;
}

/** @param name STANDBY_NAME */
export const namesOf = (name: string): StreamNames => ({
  stream: `PX_${name}`,
  subject: `px.${name}.log`,
  beat: `px.${name}.beat`,
  at: `px.${name}.at`,
  ask: `px.${name}.ask`,
  copy: `px.${name}.copy`,
  call: `px.${name}.call`,
});
