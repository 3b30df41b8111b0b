/** What a copy of the exchange's files has, as the box that made it says. */
import { statfsSync } from "node:fs";
import Type from "typebox";
import { COPY_SPARE_BYTES } from "./limits.ts";

export const CopyManifest = Type.Object({
  /** The log's last batch in it. */
  batch: Type.Integer({ minimum: 0 }),
  files: Type.Array(
    Type.Object({
      /** In the data folder. */
      name: Type.String({ pattern: "^(exchange\\.db|journal\\.db|log/[A-Za-z0-9][A-Za-z0-9._-]{0,99})$" }),
      bytes: Type.Integer({ minimum: 0 }),
      /** In hex. */
      sha256: Type.String({ pattern: "^[0-9a-f]{64}$" }),
    }),
    { maxItems: 20_000 },
  ),
});
export type CopyManifest = Type.Static<typeof CopyManifest>;
export type CopyFile = CopyManifest["files"][number];

export const bytesOf = (files: readonly CopyFile[]): number => files.reduce((sum, { bytes }) => sum + bytes, 0);

/** @param whose disk it is @throws Error where it has no room for so many bytes more, and some to spare */
export function requireRoom(whose: "its" | "this box's" | "the archives'", folder: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  if (free >= bytes + COPY_SPARE_BYTES) return;
  const [needed, there] = [bytes + COPY_SPARE_BYTES, free].map((each) => `${Math.ceil(each / 2 ** 20)} MiB`);
  throw new Error(`${whose} disk has no room for a copy: it takes ${needed}, ${there} are free`);
}
