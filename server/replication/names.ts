/** The names of an exchange's stream and of its subject. */
export interface StreamNames {
  readonly stream: string;
  readonly subject: string;
}

/** @param name STANDBY_NAME */
export const namesOf = (name: string): StreamNames => ({ stream: `PX_${name}`, subject: `px.${name}.log` });
