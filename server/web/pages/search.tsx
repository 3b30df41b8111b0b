/** Finds markets and events by a text: open ones, then those that have ended. */
import { useEffect } from "preact/hooks";
import { search } from "../router.ts";
import { SearchField } from "../shell/search-field.tsx";
import { Empty } from "../ui/notices.tsx";
import EndedMarkets from "./feed/ended-markets.tsx";
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
        <>
          <FeedItems query={{ q }} empty="No open market or event matches." />
          <EndedMarkets query={{ q }} empty={null} />
        </>
      )}
    </>
  );
}
