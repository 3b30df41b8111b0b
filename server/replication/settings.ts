/** What follows from the settings of a copied log. */
import type { ReplicationSettings } from "./types.ts";

/** True where nothing is shown before other boxes have it. @param settings null on a single box */
export const holdsLog = (settings: ReplicationSettings | null): boolean => settings !== null && settings.ack !== "none";

/** The names of an exchange's stream and of its subject. */
export interface StreamNames {
  readonly stream: string;
  readonly subject: string;
}

/** @param name STANDBY_NAME */
export const namesOf = (name: string): StreamNames => ({ stream: `PX_${name}`, subject: `px.${name}.log` });
