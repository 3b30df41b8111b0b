/** Downloads a list as a file for spreadsheets. */
import { useState } from "preact/hooks";
import type { Query } from "../api.ts";
import { requestRaw } from "../session.ts";
import { useAction } from "./action.ts";
import { Icon } from "./icon.tsx";
import { ErrorNotice } from "./notices.tsx";

/** How long the browser may take to save the file. */
const SAVING_MS = 60_000;

interface CsvButtonProps {
  list: "orders" | "fills" | "positions" | "settlements" | "transactions";
  /** Its filters: the file has all that match. */
  query: Query;
  isDisabled?: boolean;
}

export function CsvButton({ list, query, isDisabled = false }: CsvButtonProps) {
  const [isIncomplete, setIncomplete] = useState(false);
  const { run, isBusy, error } = useAction(async () => {
    setIncomplete(false);
    const response = await requestRaw("GET", `/me/exports/${list}`, { query: { ...query, layout: "spreadsheet" } });
    let file: Blob;
    try {
      file = await response.blob();
    } catch {
      // The server aborts the response if it can't complete the file.
      setIncomplete(true);
      return;
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    link.download = `${list}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), SAVING_MS);
  });
  return (
    <>
      <button
        type="button"
        class="small"
        aria-label="Download CSV"
        aria-busy={isBusy}
        disabled={isBusy || isDisabled}
        onClick={() => void run()}
      >
        <Icon name="download" /> CSV
      </button>
      {isIncomplete && (
        <p class="notice bad" role="alert">
          Download incomplete. Try again, or choose a shorter period.
        </p>
      )}
      <ErrorNotice error={error} />
    </>
  );
}
