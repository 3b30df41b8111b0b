/** The public files of book history: which days a market has, and each day's file, whole or a part. */
import { dayOf } from "../../engine/log/archive-format.ts";
import type { Clock } from "../../engine/util/clock.ts";
import { notFound, overloaded } from "../errors.ts";
import { Listing } from "../http/paging.ts";
import { type RequestReply, type Route, route } from "../http/route.ts";
import type { BookDays, BookFile } from "../queries/book-files.ts";
import type { History } from "../queries/history.ts";
import { MAX_HISTORY_PIECE_BYTES } from "./limits.ts";
import type { MarketRegistry } from "./registry.ts";
import { marketNamed } from "./routes.ts";
import * as S from "./schemas.ts";

const LIST = "/markets/:id/history";
const FILE = /^(\d{4}-\d{2}-\d{2})\.(parquet|jsonl\.gz)$/;
const FILE_TYPE = "application/octet-stream";
const FOR_EVER = "public, max-age=31536000, immutable";
/** A file of the current day is replaced every hour. */
const FOR_A_MINUTE = "public, max-age=60";

export interface HistoryRouteContext {
  readonly exchange: { readonly registry: MarketRegistry; readonly clock: Clock };
  readonly history: History;
}

export function createHistoryRoutes({ exchange, history }: HistoryRouteContext): Route[] {
  const { registry } = exchange;
  return [
    route({
      method: "GET",
      path: LIST,
      summary: "The days that a market has files of book history of, newest first",
      query: S.HistoryQuery,
      response: S.HistoryDays,
      async handler({ params, query, address }) {
        const market = marketNamed(registry, params[0]);
        const listing = new Listing(LIST, { marketId: market.id });
        const page = listing.page(query);
        const days = {
          marketId: market.id,
          ...page,
          since: dayOf(market.createdAt),
          today: dayOf(exchange.clock.now()),
        };
        return daysJson(listing, await history.bookDays(address.client, days));
      },
    }),
    route({
      method: "GET",
      path: `${LIST}/:file`,
      summary: "Every change of a market's books on one day: 2026-11-24.parquet, or .jsonl.gz; takes one Range",
      headers: ["if-none-match", "range", "if-range"],
      response: S.HistoryFile,
      enveloped: false,
      contentType: FILE_TYPE,
      cache: FOR_A_MINUTE,
      async handler({ params: [name, fileName], headers, address, reply }) {
        const { id: marketId } = marketNamed(registry, name);
        const [, date = "", ending] = FILE.exec(fileName) ?? [];
        if (date === "") throw notFound("file: its name is like 2026-11-24.parquet or 2026-11-24.jsonl.gz");
        const file = await history.bookFile(address.client, { marketId, date, isParquet: ending === "parquet" });
        if (file === null) throw notFound("history of this day");
        respond(reply, file, `${marketId}-${fileName}`, headers, (from, length) =>
          history.bookPiece(address.client, { marketId, name: file.name, from, length }),
        );
        return undefined;
      },
    }),
  ];
}

function daysJson(listing: Listing, { items, next, missing }: BookDays): string {
  const texts = items.map(({ date, rows, firstAt, lastAt, isComplete, parquet, jsonLines }) =>
    JSON.stringify({
      ...{ date, rows, bytes: parquet.bytes, sha256: parquet.sha256, first_at: firstAt, last_at: lastAt },
      complete: isComplete,
      jsonl: { bytes: jsonLines.bytes, sha256: jsonLines.sha256 },
    } satisfies S.HistoryDay),
  );
  const page = listing.json(texts, next);
  return `${page.slice(0, -1)},"missing":${JSON.stringify(missing)}}`;
}

type FileHeaders = Readonly<Record<"if-none-match" | "range" | "if-range", string>>;
type ReadPiece = (from: number, length: number) => Promise<Uint8Array | null>;

function respond(reply: RequestReply, file: BookFile, name: string, headers: FileHeaders, read: ReadPiece): void {
  const { bytes, sha256, isComplete } = file;
  const tag = `"${sha256}"`;
  reply.header("ETag", tag);
  reply.header("Accept-Ranges", "bytes");
  if (isNamed(headers["if-none-match"], tag)) return reply.plain(304, "");
  const isWanted = headers["if-range"] === "" || headers["if-range"] === tag;
  const range = isWanted ? rangeOf(headers.range, bytes) : null;
  if (range === "unsatisfiable") {
    reply.header("Content-Range", `bytes */${bytes}`);
    return reply.plain(416, "");
  }
  const { from, end } = range ?? { from: 0, end: bytes };
  if (range !== null) reply.header("Content-Range", `bytes ${from}-${end - 1}/${bytes}`);
  const cache = isComplete ? FOR_EVER : FOR_A_MINUTE;
  const head = { status: range === null ? 200 : 206, type: FILE_TYPE, name, length: end - from, cache } as const;
  reply.file(head, pieces(from, end, read));
}

/** Compares as RFC 9110, section 13.1.2, says: a list of tags, or * for any. */
function isNamed(header: string, tag: string): boolean {
  const tags = header.split(",").map((each) => each.trim().replace(/^W\//, ""));
  return tags.includes(tag) || tags.includes("*");
}

/** The bytes of one range; null where the header is none, is another unit, or names several: then the file is sent whole. */
function rangeOf(header: string, bytes: number): { from: number; end: number } | "unsatisfiable" | null {
  const [whole, first, last] = /^bytes=(\d*)-(\d*)$/.exec(header.trim()) ?? [];
  if (whole === undefined || (first === "" && last === "")) return null;
  if (first === "") {
    const from = Math.max(0, bytes - Number(last));
    return Number(last) === 0 ? "unsatisfiable" : { from, end: bytes };
  }
  const [from, end] = [Number(first), last === "" ? bytes : Math.min(bytes, Number(last) + 1)];
  if (last !== "" && Number(last) < from) return null;
  return from >= bytes ? "unsatisfiable" : { from, end };
}

async function* pieces(from: number, end: number, read: ReadPiece): AsyncGenerator<Uint8Array> {
  for (let at = from; at < end; ) {
    const piece = await read(at, Math.min(MAX_HISTORY_PIECE_BYTES, end - at));
    if (piece === null) throw overloaded("a newer file of this day has replaced this one: try again");
    yield piece;
    at += piece.length;
  }
}
