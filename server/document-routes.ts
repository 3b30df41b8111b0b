/**
 * The API's own documents, at the root: made when first asked for, and the same text from then on. They say nothing that
 * is not in the route table and the schemas.
 */
import { createHash } from "node:crypto";
import packageJson from "../package.json" with { type: "json" };
import { asyncApi } from "./reference/asyncapi.ts";
import type { JsonObject } from "./reference/components.ts";
import { openApi } from "./reference/openapi.ts";
import { type Route, route } from "./route.ts";
import * as S from "./schemas.ts";

const JSON_TYPE = "application/json";
/** To be kept, and asked about each time. */
const REVALIDATED = "public, no-cache";

interface DocumentText {
  readonly text: string;
  readonly tag: string;
}

type Make = (routes: readonly Route[], publicUrl: string, version: string) => JsonObject;

/** @param routes the whole table @param publicUrl known once the server listens */
export function createDocumentRoutes(publicUrl: () => string, routes: () => readonly Route[]): Route[] {
  const document = (path: string, summary: string, make: Make): Route => {
    let made: DocumentText | null = null;
    return route({
      method: "GET",
      path,
      unversioned: true,
      summary,
      rateClass: "none",
      headers: ["if-none-match"],
      response: S.JsonDocument,
      enveloped: false,
      contentType: JSON_TYPE,
      cache: REVALIDATED,
      handler({ headers, reply }) {
        made ??= textOf(make(routes(), publicUrl(), packageJson.version));
        reply.header("ETag", made.tag);
        const isKnown = (headers["if-none-match"] ?? "").split(",").some((tag) => tag.trim() === made!.tag);
        reply.plain(isKnown ? 304 : 200, isKnown ? "" : made.text);
        return undefined;
      },
    });
  };
  return [
    document("/openapi.json", "This document: the REST API in OpenAPI 3.1", openApi),
    document("/asyncapi.json", "The WebSocket in AsyncAPI 3.0", asyncApi),
  ];
}

function textOf(document: JsonObject): DocumentText {
  const text = JSON.stringify(document);
  return { text, tag: `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"` };
}
