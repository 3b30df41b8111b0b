/** The headers of a deprecated route's responses: Deprecation (RFC 9745), Sunset (RFC 8594), and a link to read on. */

import { assert } from "../../engine/util/assert.ts";
import { MIN_DEPRECATION_MS } from "./limits.ts";

export interface Deprecation {
  /** The day of its announcement, such as "2027-01-31", from which it is deprecated. Days start in UTC. */
  readonly since: string;
  /** The day from which it may be gone. */
  readonly sunset: string;
  /** The URL of a page that names the replacement. */
  readonly link?: string;
}

export type Header = readonly [name: string, value: string];

const NONE: readonly Header[] = [];

/** Asserts that the days are valid and leave callers the promised time. */
export function deprecationHeaders(deprecated: Deprecation | null): readonly Header[] {
  if (deprecated === null) return NONE;
  const since = startOf(deprecated.since);
  const sunset = startOf(deprecated.sunset);
  assert(sunset - since >= MIN_DEPRECATION_MS, "a sunset is no sooner than the minimum after its announcement");
  const headers: Header[] = [
    ["Deprecation", `@${since / 1_000}`],
    ["Sunset", new Date(sunset).toUTCString()],
  ];
  const { link } = deprecated;
  if (link === undefined) return headers;
  // In normal form a URL has none of the characters that end a link.
  const { href } = new URL(link);
  return [...headers, ["Link", `<${href}>; rel="deprecation", <${href}>; rel="sunset"`]];
}

/** Milliseconds since the epoch. */
function startOf(day: string): number {
  const time = Date.parse(`${day}T00:00:00.000Z`);
  assert(!Number.isNaN(time) && new Date(time).toISOString().startsWith(`${day}T`), `"${day}" is a day`);
  return time;
}
