/** Operators' pictures of markets: re-encoded on a thread of their own, named after their content. */
import { createHash } from "node:crypto";
import type { StoredPicture } from "../../engine/log/writes.ts";
import { badRequest, overloaded } from "../errors.ts";
import { ThreadPool } from "../util/thread-pool.ts";
import { MAX_PICTURE_BYTES, MAX_PICTURE_SIDE, MAX_WAITING_PICTURES } from "./limits.ts";
import type { PictureJob, PictureResult } from "./picture-worker.ts";

/** The thread ends after a while without a picture: the decoders keep the memory of the largest. */
const IDLE_MS = 10_000;
const HASH_LENGTH = 32;

export class Pictures {
  private readonly pool: ThreadPool;

  /** @param onLost gets the error that the thread died of */
  constructor(onLost: (error: Error) => void) {
    const file = new URL("./picture-worker.js", import.meta.url);
    this.pool = new ThreadPool({ file, threads: 1, startsWith: 0, idleMs: IDLE_MS, onLost });
  }

  /** @param base64 a PNG, JPEG or WebP file @throws ApiError 40000 naming the field, 50300 where too many wait */
  async encode(base64: string): Promise<StoredPicture> {
    if (this.pool.queued >= MAX_WAITING_PICTURES) throw overloaded("too many pictures in flight: try again");
    const webp = await this.pool.run<PictureResult>("encode", { base64 } satisfies PictureJob);
    if (webp === null) {
      throw badRequest(
        `picture: must be a PNG, JPEG or WebP file in base64, of at most ${MAX_PICTURE_BYTES} bytes and ${MAX_PICTURE_SIDE} pixels a side`,
      );
    }
    const hash = createHash("sha256").update(Buffer.from(webp, "base64")).digest("hex").slice(0, HASH_LENGTH);
    return { hash, webp };
  }

  close(): Promise<void> {
    return this.pool.close();
  }
}
