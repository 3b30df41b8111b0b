/** Code with a copy button, and request samples in several languages. */

import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { copyText } from "../../browser.ts";
import { SegmentedControl } from "../../ui/segmented-control.tsx";
import { LANGUAGES, type Language, type Sample } from "./samples.ts";

/** The language chosen last, for all samples. */
const language = signal<Language>("curl");
const COPIED_MS = 2_000;

export function Code({ label, text }: { label: string; text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await copyText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  };
  return (
    <figure class="code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users scroll long lines */}
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
      <SegmentedControl label="Language" value={language.value} options={LANGUAGES} onChange={setLanguage} />
      <Code label="Example request" text={sample[language.value]} />
    </div>
  );
}

function setLanguage(value: Language): void {
  language.value = value;
}
