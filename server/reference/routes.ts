/**
 * The API documents at the root, and the schema of the binary protocol. The first request generates a document, a few
 * milliseconds per turn of the event loop, and compresses it off the gateway's thread; later requests get the same bytes.
 * All content comes from the route table, the schemas and the texts of this room.
 */

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { TSchema } from "typebox";
import { systemClock } from "../../engine/util/clock.ts";
import packageJson from "../../package.json" with { type: "json" };
import { allowsEncoding } from "../http/content-negotiation.ts";
import { type Route, route } from "../http/route.ts";
import { JsonDocument, Text } from "../http/schemas.ts";

import { asyncApi } from "./asyncapi.ts";
import type { JsonObject } from "./components.ts";
import { openApi } from "./openapi.ts";

const JSON_TYPE = "application/json";
const XML_TYPE = "application/xml";
/** A build has a copy of server/websocket/sbe/sbe.xml. */
const SBE_SCHEMA = new URL("./sbe.xml", import.meta.url);
/** Caches may store the document, but must revalidate it. */
const REVALIDATED = "public, no-cache";

/** Each encoding has its own ETag. */
interface Form {
  readonly body: Buffer;
  readonly tag: string;
}

interface Forms {
  readonly plain: Form;
  readonly zipped: Form;
}

/** Generates a document in steps. */
type Make = (routes: readonly Route[], publicUrl: string, version: string) => Generator<undefined, JsonObject>;
/** The longest that generating a document keeps the event loop busy in one turn. */
const TURN_MS = 2;

/** @param routes the whole table @param publicUrl known once the server listens */
export function createDocumentRoutes(publicUrl: () => string, routes: () => readonly Route[]): Route[] {
  const generated = (make: Make) => async (): Promise<Buffer> => {
    const steps = make(routes(), publicUrl(), packageJson.version);
    return Buffer.from(JSON.stringify(await inTurns(steps)));
  };
  const json = { unversioned: true, response: JsonDocument, contentType: JSON_TYPE } as const;
  const xml = { unversioned: false, response: Text, contentType: XML_TYPE } as const;
  return [
    document("/openapi.json", "This document: the REST API in OpenAPI 3.1", json, generated(openApi)),
    document("/asyncapi.json", "The WebSocket in AsyncAPI 3.0", json, generated(asyncApi)),
    document("/sbe.xml", "The schema of the binary protocol (FIX SBE 1.0)", xml, () => readFile(SBE_SCHEMA)),
  ];
}

type Kind = Pick<Route, "unversioned" | "contentType"> & { readonly response: TSchema };

function document(path: string, summary: string, kind: Kind, make: () => Promise<Buffer>): Route {
  let made: Promise<Forms> | null = null;
  return route({
    method: "GET",
    path,
    summary,
    rateClass: "none",
    headers: ["if-none-match", "accept-encoding"],
    enveloped: false,
    cache: REVALIDATED,
    ...kind,
    async handler({ headers, reply }) {
      made ??= make().then(formsOf);
      const { plain, zipped } = await made;
      const isZipped = allowsEncoding(headers["accept-encoding"] ?? "", "gzip");
      const { body, tag } = isZipped ? zipped : plain;
      reply.header("ETag", tag);
      reply.header("Vary", "Accept-Encoding");
      const isKnown = (headers["if-none-match"] ?? "")
        .split(",")
        .some((each) => ["*", tag].includes(each.trim().replace(/^W\//, "")));
      if (isZipped && !isKnown) reply.header("Content-Encoding", "gzip");
      reply.plain(isKnown ? 304 : 200, isKnown ? "" : body);
      return undefined;
    },
  });
}

async function formsOf(body: Buffer): Promise<Forms> {
  const hash = createHash("sha256").update(body).digest("base64url").slice(0, 22);
  return { plain: { body, tag: `"${hash}"` }, zipped: { body: await promisify(gzip)(body), tag: `"${hash}-gzip"` } };
}

async function inTurns<T>(steps: Generator<undefined, T>): Promise<T> {
  for (;;) {
    const end = systemClock.elapsed() + TURN_MS;
    do {
      const { done, value } = steps.next();
      if (done === true) return value;
    } while (systemClock.elapsed() < end);
    await setImmediate();
  }
}
