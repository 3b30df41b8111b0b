/** Applies for KYC tier 2 with an identity document. */
import { useState } from "preact/hooks";
import { countries } from "../../countries.ts";
import { fieldErrorMessage } from "../../error-messages.ts";
import { humanize } from "../../format.ts";
import { request } from "../../session.ts";
import type { IdentityApplication } from "../../types.ts";
import { focusHeading } from "../../ui/account-layout.tsx";
import { Field, Select } from "../../ui/fields.tsx";
import { ErrorNotice } from "../../ui/notices.tsx";
import { toast } from "../../ui/toast.tsx";
import { useAction } from "../../ui/use-data.ts";
import { useForm } from "../../ui/use-form.ts";

const DOCUMENTS = [
  ["passport", "Passport"],
  ["id_card", "Identity card"],
  ["driving_license", "Driving licence"],
  ["residence_permit", "Residence permit"],
] as const;

export const documentName = (type: string): string => DOCUMENTS.find(([each]) => each === type)?.[1] ?? humanize(type);

const ALL_COUNTRIES = countries();

export function IdentityForm({ isAgain, onMade }: { isAgain: boolean; onMade: (made: IdentityApplication) => void }) {
  const [type, setType] = useState<string>("passport");
  const [number, setNumber] = useState("");
  const [country, setCountry] = useState("");
  const trimmed = number.trim();
  const { form, shown, submit } = useForm({
    number:
      trimmed === ""
        ? "Enter the number that is printed on the document."
        : /^[A-Za-z0-9 ./-]{1,64}$/.test(trimmed)
          ? null
          : "Letters, digits, spaces, dots, slashes and dashes only.",
    country: country === "" ? "Choose the country that issued it." : null,
  });
  const { run, isBusy, error, clear } = useAction(async () => {
    const body = { document_type: type, document_number: trimmed, country };
    onMade(await request<IdentityApplication>("POST", "/me/identity", { body }));
    toast("Your application is sent.");
    focusHeading("application");
  });
  const told = fieldErrorMessage(error, "document_number");
  return (
    <form ref={form} noValidate aria-labelledby="apply" onSubmit={submit(() => void run())}>
      <h3 id="apply">{isAgain ? "Apply again for tier 2" : "Apply for tier 2"}</h3>
      <Select label="Document" value={type} options={DOCUMENTS} onChange={setType} />
      <Field
        label="Document number"
        autoComplete="off"
        maxLength={64}
        hint="Only operators who decide on applications see it."
        value={number}
        problem={shown.number ?? told}
        onInput={(text) => {
          setNumber(text);
          clear();
        }}
      />
      <div class="field">
        <Select
          label="Issued by"
          value={country}
          options={[["", "Choose a country"], ...ALL_COUNTRIES]}
          onChange={setCountry}
        />
        {shown.country !== null && (
          <div class="hint bad" role="alert">
            {shown.country}
          </div>
        )}
      </div>
      {told === null && <ErrorNotice error={error} />}
      <button type="submit" class="primary" disabled={isBusy}>
        {isBusy ? "Sending…" : "Send the application"}
      </button>
    </form>
  );
}

// ---------------------------------------------------------------- limits
