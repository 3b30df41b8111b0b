/** The dialog that offers a market's files of book history. */
import { shares } from "../../util/format.ts";
import { API } from "../api.ts";
import type { HistoryDay, Market } from "../types.ts";
import { Dialog } from "../ui/dialog.tsx";
import { ErrorNotice, Loading } from "../ui/notices.tsx";
import { usePages } from "../ui/paged-list.ts";
import { type Column, LoadMore, Table } from "../ui/table.tsx";

const KILOBYTE = 1_000;

/** A file's size in the unit that shows it with few digits. */
function sizeText(bytes: number): string {
  const kilobytes = bytes / KILOBYTE;
  if (kilobytes < KILOBYTE) return `${Math.ceil(kilobytes)} KB`;
  return `${(kilobytes / KILOBYTE).toFixed(1)} MB`;
}

export function BookHistory({ market: { id }, onClose }: { market: Market; onClose: () => void }) {
  const { items, error, more, reload } = usePages<HistoryDay>(`/markets/${id}/history`);
  const file = (date: string, ending: string, bytes: number) => (
    <a href={`${API}/markets/${id}/history/${date}.${ending}`} download translate={false}>
      {sizeText(bytes)}
    </a>
  );
  const columns: Column<HistoryDay>[] = [
    { title: "Day (UTC)", show: ({ date, complete }) => (complete ? date : `${date} so far`) },
    { title: "Rows", isNumber: true, show: ({ rows }) => shares(rows) },
    { title: "Parquet", isNumber: true, show: ({ date, bytes }) => file(date, "parquet", bytes) },
    { title: "JSON lines", isNumber: true, show: ({ date, jsonl }) => file(date, "jsonl.gz", jsonl.bytes) },
  ];
  return (
    <Dialog title="Book history" onClose={onClose}>
      <p class="hint">
        Every change of the order books, every trade and every state of this market, a file for each day. New hours
        appear shortly after they are over; a day without a change has no file.
      </p>
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && <Loading />}
      {items !== null && (
        <Table
          caption="Files by day"
          columns={columns}
          rows={items}
          keyOf={({ date }) => date}
          empty="No history yet. The first file appears after the next full hour."
        />
      )}
      <LoadMore more={more} />
    </Dialog>
  );
}
