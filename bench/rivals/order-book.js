/**
 * Runs the book bench's operations through a package's OrderBook and prints the seconds that they took, as JSON. Reads
 * them from a file of int32: how many fill the book, then five words each: kind, side, id, price, quantity.
 * nodejs-order-book and hft-limit-order-book have the same methods. Their ids are text, made before the clock starts;
 * both know immediate-or-cancel; neither has levels or events to publish, which are not asked of them.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { OrderBook } = createRequire(import.meta.url)("nodejs-order-book");
const CANCEL = 3;
const IMMEDIATE = 2;
const WORDS = 5;

const bytes = readFileSync(process.argv[3]);
const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
const prefill = words[0];
const count = (words.length - 1) / WORDS;
const ids = Array.from({ length: count }, (_, i) => String(words[1 + i * WORDS + 2]));
const book = new OrderBook();

function run(from, to) {
  for (let i = from; i < to; i++) {
    const at = 1 + i * WORDS;
    const kind = words[at];
    const id = ids[i];
    if (kind === CANCEL) {
      if (book.cancel(id) === undefined) throw new Error(`${id} does not rest`);
      continue;
    }
    const side = words[at + 1] === 1 ? "buy" : "sell";
    const timeInForce = kind === IMMEDIATE ? "IOC" : "GTC";
    const answer = book.limit({ id, side, size: words[at + 4], price: words[at + 3], timeInForce });
    if (answer.err !== null) throw answer.err;
    if (kind === IMMEDIATE && answer.quantityLeft !== 0) throw new Error(`${id} did not fill`);
  }
}

run(0, prefill);
const start = performance.now();
run(prefill, count);
console.log(JSON.stringify({ seconds: (performance.now() - start) / 1_000 }));
