/** The page's beginning: what runs as long as it is open, and what is shown. */
import { render } from "preact";
import "./styles.css";
import { startAccountState } from "./account-state.ts";
import { App } from "./app.tsx";
import { startRouter } from "./router.ts";
import { startSession } from "./session.ts";
import { startStream } from "./stream.ts";

startRouter();
render(<App />, document.getElementById("page")!);
startAccountState();
startStream();
void startSession();
