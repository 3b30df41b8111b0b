/** Chooses a market's picture: the browser reads the file, whatever it can show, and scales it down before it is sent. */
import { useId, useState } from "preact/hooks";
import { MAX_PICTURE_BYTES, PICTURE_SIDE } from "../../../markets/limits.ts";
import { Tile } from "../../ui/tile.tsx";

/** Twice what the exchange keeps: it cuts and encodes by itself. */
const SENT_SIDE = 2 * PICTURE_SIDE;
/** In order; a browser that doesn't write a format gives another one, which may be too large. */
const FORMATS = [
  ["image/png", 1],
  ["image/webp", 0.9],
  ["image/jpeg", 0.85],
] as const;

interface PictureFieldProps {
  slug: string;
  /** The path of the current picture. */
  current: string | null;
  /** Base64 of a new one; null: none from now on; undefined: as it is. */
  value: string | null | undefined;
  onChange: (value: string | null | undefined) => void;
}

export function PictureField({ slug, current, value, onChange }: PictureFieldProps) {
  const id = useId();
  const [problem, setProblem] = useState<string | null>(null);
  /** The chosen file, as a data URL. */
  const [chosen, setChosen] = useState<string | null>(null);
  const shown = value === undefined ? current : value === null ? null : chosen;
  const choose = async (input: HTMLInputElement): Promise<void> => {
    const file = input.files?.[0];
    if (file === undefined) return;
    try {
      const scaled = await scaledDown(file);
      setProblem(null);
      setChosen(scaled);
      onChange(scaled.slice(scaled.indexOf(",") + 1));
    } catch {
      input.value = "";
      setProblem("Your browser can't read this file as a picture. Choose a PNG, JPEG or WebP file.");
    }
  };
  return (
    <div class="field">
      <label for={id}>Picture</label>
      <div class="row">
        <Tile slug={slug} picture={shown} size="large" />
        <input
          id={id}
          type="file"
          accept="image/*"
          aria-invalid={problem !== null}
          aria-describedby={`${id}-hint`}
          onChange={(event) => void choose(event.currentTarget)}
        />
        {shown !== null && (
          <button type="button" class="quiet" onClick={() => onChange(current === null ? undefined : null)}>
            Remove
          </button>
        )}
      </div>
      <div id={`${id}-hint`} class={problem === null ? "hint" : "hint bad"}>
        {problem ?? "The square in its middle is shown. Without a picture: the initials."}
      </div>
    </div>
  );
}

/** The square in the middle of a picture, as a data URL. Rejects where the browser can't read it. */
async function scaledDown(file: File): Promise<string> {
  const bitmap = await createImageBitmap(file);
  const canvas = document.createElement("canvas");
  canvas.width = SENT_SIDE;
  canvas.height = SENT_SIDE;
  const side = Math.min(bitmap.width, bitmap.height);
  const [left, top] = [(bitmap.width - side) / 2, (bitmap.height - side) / 2];
  const context = canvas.getContext("2d");
  if (context === null) throw new Error("the browser has no canvas");
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, left, top, side, side, 0, 0, SENT_SIDE, SENT_SIDE);
  bitmap.close();
  for (const [type, quality] of FORMATS) {
    const url = canvas.toDataURL(type, quality);
    if ((url.length - url.indexOf(",") - 1) * 0.75 <= MAX_PICTURE_BYTES) return url;
  }
  throw new Error("the picture is too large in every format");
}
