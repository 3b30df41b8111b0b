/** Finds a user by email or id, and filters lists by user. */
import { useState } from "preact/hooks";
import { ApiError } from "../../api.ts";
import { request } from "../../session.ts";
import type { OperatorUser, Page } from "../../types.ts";
import { Field } from "../../ui/fields.tsx";
import { ErrorNotice } from "../../ui/notices.tsx";
import { useAction } from "../../ui/use-data.ts";
import { UserLink } from "./links.tsx";

/** By e-mail address, or by number. @throws ApiError */
async function findUser(text: string): Promise<OperatorUser | null> {
  if (/^\d+$/.test(text)) {
    try {
      return await request<OperatorUser>("GET", `/admin/users/${text}`);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    }
  }
  const { items } = await request<Page<OperatorUser>>("GET", "/admin/users", { query: { email: text } });
  return items[0] ?? null;
}

/** Finds a user by what is typed. */
export function UserSearch({ label, onFound }: { label: string; onFound: (user: OperatorUser) => void }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const { run, isBusy, error } = useAction(async () => {
    const found = await findUser(text.trim());
    if (found === null) setProblem("No user has this address or number.");
    else {
      setText("");
      onFound(found);
    }
  });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    event.stopPropagation();
    const isEmpty = text.trim() === "";
    setProblem(isEmpty ? "An e-mail address, or a user's number." : null);
    if (!isEmpty) void run();
  };
  return (
    <search>
      <form class="user-search" noValidate onSubmit={submit}>
        <Field label={label} value={text} onInput={setText} problem={problem} hint="E-mail address or number" />
        <button type="submit" disabled={isBusy}>
          Find
        </button>
        <ErrorNotice error={error} />
      </form>
    </search>
  );
}

/** Of a list: of one user alone, or of all. */
export function UserFilter({ userId, onChange }: { userId: string; onChange: (userId: string | null) => void }) {
  if (userId === "") return <UserSearch label="Of one user" onFound={({ id }) => onChange(String(id))} />;
  return (
    <p class="row">
      <span>
        Of <UserLink id={Number(userId)} /> alone.
      </span>
      <button type="button" class="small" onClick={() => onChange(null)}>
        Show all users'
      </button>
    </p>
  );
}

// ---------------------------------------------------------------- money
