/**
 * Where the token of an upgrade is: `?token=` or `Authorization: Bearer`. A credential anywhere else is rejected, since a bot
 * that believes to be signed in would wait for its fills for ever. Checks no token.
 */
import type { HttpRequest } from "uWebSockets.js";
import { ApiError, badRequest, ErrorKind } from "../errors.ts";
import { bearerOf } from "../sign-in/authenticator.ts";

const PARAMETER = "token";
/** Header fields in which other exchanges take credentials. */
const FOREIGN = ["x-api-key", "api-key", "x-auth-token", "x-access-token"] as const;
/** A subprotocol that carries a credential, as some gateways want it. */
const PROTOCOL = /(^|[\s,])(bearer|authorization|(access[_-])?token|pm_pat_|eyJ)/i;
const PLACES = "use ?token=TOKEN or the header Authorization: Bearer TOKEN";

/**
 * Returns the token or ticket; null without one.
 * @param query undecoded @param authorization the header's value, "" where it is missing
 * @throws ApiError 40000 for a credential in another place, or for two that differ; 40100 for an empty one
 */
export function credentialOf(req: HttpRequest, query: string, authorization: string): string | null {
  for (const name of FOREIGN) if (req.getHeader(name) !== "") throw badRequest(`${name}: not read here, ${PLACES}`);
  if (PROTOCOL.test(req.getHeader("sec-websocket-protocol"))) {
    throw badRequest(`Sec-WebSocket-Protocol: json or msgpack; for a token ${PLACES}`);
  }
  const [inQuery, inHeader] = [tokenInQuery(query), tokenInHeader(authorization)];
  if (inQuery !== null && inHeader !== null && inQuery !== inHeader) {
    throw badRequest("token: another one than in Authorization: send one of them");
  }
  return inQuery ?? inHeader;
}

function tokenInQuery(query: string): string | null {
  let found: string | null = null;
  for (const [name, value] of new URLSearchParams(query)) {
    if (name !== PARAMETER) throw badRequest(`${name.slice(0, 64)}: unknown parameter; ${PLACES}`);
    if (found !== null) throw badRequest("token: given twice");
    found = value;
  }
  return found;
}

function tokenInHeader(authorization: string): string | null {
  if (authorization === "") return null;
  const token = bearerOf(authorization);
  if (token !== null) return token;
  if (/^Bearer *$/i.test(authorization)) throw new ApiError(ErrorKind.unauthenticated, "Authorization: no token");
  throw badRequest("Authorization: Bearer TOKEN");
}
