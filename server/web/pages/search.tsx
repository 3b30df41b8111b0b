/** Finds open markets and events by a text. */
import { useEffect } from "preact/hooks";
import { search } from "../router.ts";
import { SearchField } from "../shell/search-field.tsx";
import { Empty } from "../ui/notices.tsx";
import { FeedItems } from "./feed.tsx";

export default function SearchPage() {
  const q = search.value.get("q") ?? "";
  useEffect(() => {
    document.title = q === "" ? "Search · Prediction Exchange" : `${q} · Prediction Exchange`;
  }, [q]);
  return (
    <>
      <h1>{q === "" ? "Search" : `Results for “${q}”`}</h1>
      <SearchField />
      {q === "" ? (
        <Empty>Search for a question, an outcome or an event.</Empty>
      ) : (
        <FeedItems query={{ q }} empty="No results" />
      )}
    </>
  );
}
