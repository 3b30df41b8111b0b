/** Files of pictures, in base64. */
import { readFileSync } from "node:fs";

const PUBLIC = new URL("../../server/web/public/", import.meta.url);

/** A PNG file: the page's own icon, `name` in the folder of its public files. */
export function pictureFile(name = "icon-512.png"): string {
  return readFileSync(new URL(name, PUBLIC), "base64");
}
