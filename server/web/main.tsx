/** Entry point: renders the app and starts router, session, account state and stream. */
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
