/** Text to take along: shown as it is, copied by a button; and the same thing in several languages. */
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { SegmentedControl } from "../../ui/fields.tsx";
import { LANGUAGES, type Language, type Sample } from "./samples.ts";

/** The one that was chosen last, for all examples. */
const language = signal<Language>("curl");
const COPIED_MS = 2_000;

export function Code({ label, text }: { label: string; text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Without HTTPS browsers have no clipboard for pages, save this old way.
      const field = document.createElement("textarea");
      field.value = text;
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
    }
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  };
  return (
    <figure class="code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled to, by keyboard too */}
      <section class="code" tabIndex={0} aria-label={label}>
        <pre>{text}</pre>
      </section>
      <button type="button" class="small" aria-label={`Copy: ${label}`} onClick={() => void copy()}>
        {isCopied ? "Copied" : "Copy"}
      </button>
    </figure>
  );
}

export function SampleTabs({ sample }: { sample: Sample }) {
  return (
    <div class="stack">
      <SegmentedControl
        label="Language of the example"
        value={language.value}
        options={LANGUAGES}
        onChange={setLanguage}
      />
      <Code label="Example request" text={sample[language.value]} />
    </div>
  );
}

function setLanguage(value: Language): void {
  language.value = value;
}
