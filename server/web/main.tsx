/** Entry point: renders the app and starts router, session, account state and stream. */
import { effect } from "@preact/signals";
import { render } from "preact";
import "./styles.css";
import { startAccountState } from "./account-state.ts";
import { App } from "./app.tsx";
import { startForeignChanges } from "./foreign-changes.ts";
import { required } from "./required.ts";
import { startRouter } from "./router.ts";
import { sessionState, startSession } from "./session.ts";
import { startStream } from "./stream.ts";

const root = required(document.getElementById("page"), "the page's root element");
startForeignChanges(root);
startRouter();
render(<App />, root);
startAccountState();
startStream();
void startSession();
// They start when they are first loaded: once somebody has signed in.
effect(() => {
  if (sessionState.value !== "in") return;
  void import("./trading/order-toasts.ts");
  void import("./accounts-watchlist.ts");
});
