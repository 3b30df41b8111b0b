/** Applies for KYC tier 2 with an identity document. */
import { useState } from "preact/hooks";
import { humanize } from "../../../util/format.ts";
import { countries } from "../../countries.ts";
import { fieldErrorMessage } from "../../error-messages.ts";
import { request } from "../../session.ts";
import type { IdentityApplication } from "../../types.ts";
import { focusHeading } from "../../ui/account-layout.tsx";
import { useAction } from "../../ui/action.ts";
import { Field, Select } from "../../ui/fields.tsx";
import { ErrorNotice } from "../../ui/notices.tsx";
import { toast } from "../../ui/toast.tsx";
import { useForm } from "../../ui/use-form.ts";

const DOCUMENTS = [
  ["passport", "Passport"],
  ["id_card", "ID card"],
  ["driving_license", "Driver's license"],
  ["residence_permit", "Residence permit"],
] as const;

export const documentName = (type: string): string => DOCUMENTS.find(([each]) => each === type)?.[1] ?? humanize(type);

const ALL_COUNTRIES = countries();

export function IdentityForm({
  isAgain,
  onSubmitted,
}: {
  isAgain: boolean;
  onSubmitted: (submitted: IdentityApplication) => void;
}) {
  const [type, setType] = useState<string>("passport");
  const [number, setNumber] = useState("");
  const [country, setCountry] = useState("");
  const trimmed = number.trim();
  const { form, shown, submit } = useForm({
    number:
      trimmed === ""
        ? "Enter the document number."
        : /^[A-Za-z0-9 ./-]{1,64}$/.test(trimmed)
          ? null
          : "Use letters, digits, spaces, dots, slashes and hyphens only.",
    country: country === "" ? "Select the issuing country." : null,
  });
  const { run, isBusy, error, clear } = useAction(async () => {
    const body = { document_type: type, document_number: trimmed, country };
    onSubmitted(await request<IdentityApplication>("POST", "/me/identity", { body }));
    toast("Application submitted.");
    focusHeading("application");
  });
  const serverProblem = fieldErrorMessage(error, "document_number");
  return (
    <form ref={form} noValidate aria-labelledby="apply" onSubmit={submit(() => void run())}>
      <h3 id="apply">{isAgain ? "Apply again for tier 2" : "Apply for tier 2"}</h3>
      <Select label="Document" value={type} options={DOCUMENTS} onChange={setType} />
      <Field
        label="Document number"
        autoComplete="off"
        maxLength={64}
        hint="Visible only to operators who review applications."
        value={number}
        problem={shown.number ?? serverProblem}
        onInput={(text) => {
          setNumber(text);
          clear();
        }}
      />
      <div class="field">
        <Select
          label="Issuing country"
          value={country}
          options={[["", "Select a country"], ...ALL_COUNTRIES]}
          onChange={setCountry}
        />
        {shown.country !== null && (
          <div class="hint bad" role="alert">
            {shown.country}
          </div>
        )}
      </div>
      {serverProblem === null && <ErrorNotice error={error} />}
      <button type="submit" class="primary" disabled={isBusy}>
        {isBusy ? "Submitting…" : "Submit application"}
      </button>
    </form>
  );
}
