/** A read-only text with a copy button, such as a token. */
import { useId, useRef, useState } from "preact/hooks";

/** A text to take along, such as a token: selected by a click, copied by a button. */
export function Copyable({ label, text }: { label: string; text: string }) {
  const [isCopied, setCopied] = useState(false);
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const copy = async (): Promise<void> => {
    field.current!.select();
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Without HTTPS browsers have no clipboard for pages, save this old way.
      document.execCommand("copy");
    }
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
