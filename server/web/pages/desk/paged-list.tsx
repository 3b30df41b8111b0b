/** A cursor-paged list with its loading, error and load-more states. */
import { ErrorNotice, Loading } from "../../ui/notices.tsx";
import type { Pages } from "../../ui/paged-list.ts";
import { LoadMore } from "../../ui/table.tsx";
import type { Children } from "../../ui/use-data.ts";

/** Renders the loaded items with the states around them. */
export function PagedList<T>({ pages, children }: { pages: Pages<T>; children: (items: readonly T[]) => Children }) {
  const { items, error, more, reload } = pages;
  return (
    <>
      <ErrorNotice error={error} retry={reload} />
      {items === null && error === null && <Loading />}
      {items !== null && children(items)}
      <LoadMore more={more} />
    </>
  );
}
