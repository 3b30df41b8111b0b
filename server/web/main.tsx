/** Entry point: renders the app and starts router, session, account state and stream. */
import { render } from "preact";
import "./styles.css";
import { startAccountState } from "./account-state.ts";
import { App } from "./app.tsx";
import { required } from "./required.ts";
import { startRouter } from "./router.ts";
import { startSession } from "./session.ts";
import { startStream } from "./stream.ts";

startRouter();
render(<App />, required(document.getElementById("page"), "the page's root element"));
startAccountState();
startStream();
void startSession();
