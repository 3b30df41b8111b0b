/** Reads the pictures of markets. To be called in a read transaction. */
import type Database from "better-sqlite3";

export interface PictureOptions {
  readonly marketId: number;
  /** It names the picture: an earlier one of the same market isn't found. */
  readonly hash: string;
}

/** Returns a reader of a WebP file in base64; null where the market has no such picture. */
export function preparePictures(db: Database.Database): (options: PictureOptions) => string | null {
  const picture = db.prepare("SELECT webp FROM market_pictures WHERE market_id = @marketId AND hash = @hash").pluck();
  return (options) => (picture.get(options) as string | undefined) ?? null;
}
