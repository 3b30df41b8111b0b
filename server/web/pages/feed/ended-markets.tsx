/** Markets that can't be traded any more, newest first. */
import type { Query } from "../../api.ts";
import type { Market } from "../../types.ts";
import { Empty, ErrorNotice, Loading } from "../../ui/notices.tsx";
import { usePages } from "../../ui/paged-list.ts";
import { LoadMore } from "../../ui/table.tsx";
import { MarketCards } from "./cards.tsx";

export interface EndedProps {
  readonly query: Query;
  /** What to show where there are none; null: nothing. */
  readonly empty: string | null;
}

export default function EndedMarkets({ query, empty }: EndedProps) {
  const { items, error, more, reload } = usePages<Market>("/markets", { ...query, status: ENDED });
  return (
    <>
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && empty !== null && <Loading />}
      {items !== null && items.length === 0 && empty !== null && <Empty>{empty}</Empty>}
      {items !== null && items.length > 0 && (
        <>
          {empty === null && <h2>Closed and resolved</h2>}
          <MarketCards markets={items} />
          <LoadMore more={more} />
        </>
      )}
    </>
  );
}

const ENDED = "closed,resolved,voided";
