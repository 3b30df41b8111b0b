/**
 * Binary requests of a market maker's client, and what to look for in the responses: a few offsets of docs/sbe.md, written
 * and read as a client in C does. Knows nothing of the server's codec.
 *
 *   header, 24 bytes   0 blockLength | 2 templateId | 4 schemaId | 6 version | 8 messageLength | 12 index | 14 rate | 16 id
 *   PlaceOrder, 48     0 outcomeId | 4 price | 8 quantity | 12 marketId | 16 expiresAt | 24 validUntil | 32 clientOrderId
 *                      40 side | 41 type | 42 time in force | 43 self-trade prevention | 44 flags, then two texts
 *   Subscribe, 8       0 channel | 4 outcomeId, then the group of markets: 0 length of an entry | 2 entries | 4 marketId
 */
import { assert } from "../../engine/util/assert.ts";

/** Templates. */
const PLACE_ORDER = 1;
const BATCH = 8;
const SUBSCRIBE = 9;
export const REJECTED = 101;
export const ORDER_ACCEPTED = 102;
export const DONE = 103;
export const ORDER_UPDATED = 201;
export const BOOK_UPDATED = 212;
/** Offsets in a message, from its header. */
export const TEMPLATE_AT = 2;
export const LENGTH_AT = 8;
const HEADER_BYTES = 24;

const PLACE_ORDER_BLOCK = 48;
/** Block and two empty texts, up to a multiple of 8. */
const PLACE_ORDER_BYTES = HEADER_BYTES + PLACE_ORDER_BLOCK + 8;
const BATCH_BLOCK = 8;
const SUBSCRIBE_BLOCK = 8;
/** Block and a group of one market. */
const SUBSCRIBE_BYTES = HEADER_BYTES + SUBSCRIBE_BLOCK + 8;
const MARKET_ENTRY_BYTES = 4;
const BOOK_CHANNEL = 0;
const NULL_U64 = 2n ** 64n - 1n;

/** The fields of an order as JSON names them. */
export interface SbeOrder {
  readonly market_id: number;
  readonly outcome_id: number;
  readonly side: number;
  readonly price: number;
  readonly quantity: number;
}

/** @param clientOrderId null for none */
export function placeOrder(order: SbeOrder, id: number, clientOrderId: bigint | null = null): Buffer {
  const message = messageOf(PLACE_ORDER, PLACE_ORDER_BLOCK, PLACE_ORDER_BYTES, id);
  const at = HEADER_BYTES;
  message.writeUInt32LE(order.outcome_id, at);
  message.writeUInt32LE(order.price, at + 4);
  message.writeUInt32LE(order.quantity, at + 8);
  message.writeUInt32LE(order.market_id, at + 12);
  message.writeBigUInt64LE(NULL_U64, at + 16);
  message.writeBigUInt64LE(NULL_U64, at + 24);
  message.writeBigUInt64LE(clientOrderId ?? NULL_U64, at + 32);
  message.writeUInt8(order.side, at + 40);
  message.fill(0xff, at + 41, at + 44);
  return message;
}

/** Subscribes to the book of one outcome. */
export function subscribeToBook(market: number, outcome: number): Buffer {
  const message = messageOf(SUBSCRIBE, SUBSCRIBE_BLOCK, SUBSCRIBE_BYTES, 1);
  message.writeUInt8(BOOK_CHANNEL, HEADER_BYTES);
  message.writeUInt32LE(outcome, HEADER_BYTES + 4);
  const group = HEADER_BYTES + SUBSCRIBE_BLOCK;
  message.writeUInt16LE(MARKET_ENTRY_BYTES, group);
  message.writeUInt16LE(1, group + 2);
  message.writeUInt32LE(market, group + 4);
  return message;
}

/** What precedes the operations of a batch. */
export function batchOf(count: number, id: number): Buffer {
  const message = messageOf(BATCH, BATCH_BLOCK, HEADER_BYTES + BATCH_BLOCK, id);
  message.writeUInt16LE(count, HEADER_BYTES);
  return message;
}

function messageOf(template: number, block: number, bytes: number, id: number): Buffer {
  assert(bytes % 8 === 0, "a message is a multiple of 8 bytes");
  const message = Buffer.alloc(bytes);
  message.writeUInt16LE(block, 0);
  message.writeUInt16LE(template, TEMPLATE_AT);
  message.writeUInt16LE(1, 4);
  message.writeUInt16LE(1, 6);
  message.writeUInt32LE(bytes, LENGTH_AT);
  message.writeBigUInt64LE(BigInt(id), 16);
  return message;
}
