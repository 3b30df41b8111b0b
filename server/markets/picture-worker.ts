/**
 * The entry of the pictures' thread: turns an operator's file into the one picture that the exchange serves. The decoders
 * are WebAssembly: a damaged or hostile file can neither touch the exchange's memory nor end its process.
 */
import { readFileSync } from "node:fs";
import decodeJpeg, { init as initJpeg } from "@jsquash/jpeg/decode.js";
import decodePng, { init as initPng } from "@jsquash/png/decode.js";
import resize, { initResize } from "@jsquash/resize";
import decodeWebp, { init as initWebp } from "@jsquash/webp/decode.js";
import encodeWebp, { init as initEncoder } from "@jsquash/webp/encode.js";
import { imageSize } from "image-size";
import { MAX_PICTURE_SIDE, MAX_STORED_PICTURE_BYTES, PICTURE_SIDE } from "./limits.ts";

export interface PictureJob {
  /** The file's content. */
  readonly base64: string;
}

/** A WebP file in base64; null: the file is not a picture that the exchange reads. */
export type PictureResult = string | null;

declare const WebAssembly: { readonly Module: new (bytes: Uint8Array) => object };

/** What a browser has, and the decoders make. */
class Pixels {
  readonly data: Uint8ClampedArray;
  readonly width: number;
  readonly height: number;

  constructor(data: Uint8ClampedArray, width: number, height: number) {
    this.data = data;
    this.width = width;
    this.height = height;
  }
}
Object.assign(globalThis, { ImageData: Pixels });

/** From the best on: the first that is small enough is taken. */
const QUALITIES = [85, 70, 50, 30, 10];

const codec = (path: string) => new WebAssembly.Module(readFileSync(new URL(import.meta.resolve(path))));

let ready: Promise<unknown> | null = null;

/** With the first picture: a thread that can't start would leave its job waiting. */
const loadCodecs = (): Promise<unknown> =>
  Promise.all([
    initPng(codec("@jsquash/png/codec/pkg/squoosh_png_bg.wasm")),
    initJpeg(codec("@jsquash/jpeg/codec/dec/mozjpeg_dec.wasm")),
    initWebp(codec("@jsquash/webp/codec/dec/webp_dec.wasm")),
    initEncoder(codec("@jsquash/webp/codec/enc/webp_enc_simd.wasm")),
    initResize(codec("@jsquash/resize/lib/resize/pkg/squoosh_resize_bg.wasm")),
  ]);

/** A square cut from the middle, 96 pixels wide, without the file's metadata. */
export async function encode({ base64 }: PictureJob): Promise<PictureResult> {
  ready ??= loadCodecs();
  await ready;
  const pixels = await decode(Buffer.from(base64, "base64"));
  if (pixels === null) return null;
  const square = await resize(pixels, { width: PICTURE_SIDE, height: PICTURE_SIDE, fitMethod: "contain" });
  for (const quality of QUALITIES) {
    const file = Buffer.from(await encodeWebp(square, { quality, method: 6 }));
    if (file.length <= MAX_STORED_PICTURE_BYTES) return file.toString("base64");
  }
  return null;
}

/** Reads the size first: a few bytes can stand for gigabytes of pixels. */
async function decode(file: Buffer): Promise<Pixels | null> {
  try {
    const { type, width, height } = imageSize(file);
    if (!(width > 0 && height > 0 && Math.max(width, height) <= MAX_PICTURE_SIDE)) return null;
    // A copy that begins its buffer: the decoders take all of it.
    const { buffer } = new Uint8Array(file);
    if (type === "png") return await decodePng(buffer);
    if (type === "jpg") return await decodeJpeg(buffer, { preserveOrientation: true });
    if (type === "webp") return await decodeWebp(buffer);
    return null;
  } catch {
    return null;
  }
}
