/**
 * MessagePack as a client in another language uses it: @msgpack/msgpack both ways, without the server's own code. A whole
 * number beyond 32 bits that arrives as a float is an error.
 */
import { decode, encode } from "@msgpack/msgpack";
import { type Answer, API_BASE, type Client, checkAnswer } from "./client.ts";

const MESSAGE_PACK = "application/msgpack";

export const pack = (value: unknown): Buffer => Buffer.from(encode(value));

/** The value as `JSON.parse` would have given it. @throws Error on floats that are whole numbers, and integers no double holds */
export function unpack(bytes: Uint8Array): unknown {
  return withNumbers(decode(bytes, { useBigInt64: true }));
}

function withNumbers(value: unknown): unknown {
  if (typeof value === "bigint") {
    if (!Number.isSafeInteger(Number(value))) throw new Error(`an integer beyond 53 bits: ${value}`);
    return Number(value);
  }
  if (typeof value === "number" && Number.isInteger(value) && (value > 0xffff_ffff || value < -0x8000_0000)) {
    throw new Error(`${value} came as a float`);
  }
  if (Array.isArray(value)) return value.map(withNumbers);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, withNumbers(field)]));
}

let requestCount = 0;

export interface PackedOptions {
  /** The client sends bytes unchanged, and any other value as MessagePack. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** `Client.request` in MessagePack both ways, with the same checks on the response. `path` is below /api/v1. */
export async function requestPacked<T>(
  client: Client,
  method: string,
  path: string,
  options: PackedOptions = {},
): Promise<Answer<T>> {
  const requestId = `packed-${++requestCount}`;
  const headers: Record<string, string> = { "X-Request-Id": requestId, Accept: MESSAGE_PACK };
  if (client.token !== null) headers["Authorization"] = `Bearer ${client.token}`;
  const { body } = options;
  if (body !== undefined) headers["Content-Type"] = MESSAGE_PACK;
  Object.assign(headers, options.headers);
  const bytes = body === undefined ? null : Buffer.isBuffer(body) ? body : pack(body);
  const raw = await client.send(method, API_BASE + path, headers, bytes);
  if (raw.headers["content-type"] !== MESSAGE_PACK) {
    throw new Error(`${method} ${path} is answered in ${raw.headers["content-type"]}: ${raw.body.toString()}`);
  }
  const asJson = {
    status: raw.status,
    headers: { ...raw.headers, "content-type": "application/json" },
    body: Buffer.from(JSON.stringify(unpack(raw.body))),
  };
  return checkAnswer(method, API_BASE + path, requestId, asJson) as Answer<T>;
}
