/**
 * The differences between the projects of vitest.config.ts: the rounds of a test, the engine threads of its servers, and
 * what its sockets speak.
 * Skips nothing: every variant belongs to a project.
 */

/** The factor of rounds: 1 in `npm test`, 5 in `npm run test:long`, EFFORT=n by hand. */
export const EFFORT = Number(process.env["EFFORT"] ?? 1);

/** The subprotocols that a world's sockets offer: none, or in the project "sbe" that one. */
export const SOCKET_PROTOCOLS: readonly string[] = (process.env["TEST_SOCKET_PROTOCOL"] ?? "")
  .split(",")
  .filter(Boolean);

/** True in the project "sbe": a test skips itself there where it sends or reads JSON as it stands on the wire. */
export const SPEAKS_SBE = SOCKET_PROTOCOLS.includes("sbe");

/** The variants with one engine thread; in the project "3 engine threads", those with several. */
export function variants<T>(one: readonly T[], several: readonly T[]): readonly T[] {
  return process.env["TEST_ENGINE_THREADS"] === undefined ? one : several;
}
