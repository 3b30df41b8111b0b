/** Requests that enrol a second factor. */
import { request } from "../../session.ts";
import type { ConfirmedFactor, Enrolment } from "../../types.ts";

export const PATH = "/me/second-factors";

export const begin = (kind: string, name: string): Promise<Enrolment> =>
  request("POST", PATH, { body: { kind, ...(name.trim() === "" ? {} : { name: name.trim() }) } });

export const confirm = ({ id }: Enrolment, shown: object): Promise<ConfirmedFactor> =>
  request("POST", `${PATH}/${id}/confirm`, { body: shown });
