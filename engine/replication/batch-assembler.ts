/** Puts the batches of a stream's messages together. Pure; parts that their rest doesn't follow are dropped. */
import { type Message, MessageKind } from "./message-format.ts";

export class BatchAssembler {
  private slices: Buffer[] = [];
  private batch = 0;

  /** The whole batches that the message ends, in their order. Messages come in the order of the stream. */
  add({ kind, first, part, parts, bodies }: Message): readonly Buffer[] {
    if (kind !== MessageKind.part) {
      this.slices = [];
      return bodies;
    }
    const isNext = part === this.slices.length + 1 && (part === 1 || first === this.batch);
    if (!isNext) this.slices = [];
    // The beginning of a part that came before the stream's first message is gone.
    if (!isNext && part !== 1) return [];
    this.batch = first;
    this.slices.push(bodies[0]!);
    if (part < parts) return [];
    const body = Buffer.concat(this.slices);
    this.slices = [];
    return [body];
  }
}
