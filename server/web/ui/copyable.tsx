/** A read-only text with a copy button, such as a token. */

import { useId, useRef, useState } from "preact/hooks";
import { copyText } from "../browser.ts";

/** Selected on focus, copied by the button. */
export function Copyable({ label, text }: { label: string; text: string }) {
  const [isCopied, setCopied] = useState(false);
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const copy = async (): Promise<void> => {
    await copyText(text);
    field.current?.select();
    setCopied(true);
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <div class="copyable">
        <input
          id={id}
          ref={field}
          class="mono"
          readOnly
          value={text}
          onFocus={(event) => event.currentTarget.select()}
        />
        <button type="button" onClick={() => void copy()}>
          {isCopied ? "Copied" : "Copy"}
        </button>
      </div>
    </div>
  );
}
