/** The dialogs of a market's page at the desk, as state. Types only. */
import type { Approval } from "../../types.ts";
import type { ResolutionRequest } from "./resolve-market.tsx";

export type Step = "open" | "halt" | "resume" | "close";

/** The open dialog. */
export type Opened =
  | { readonly kind: "step"; readonly step: Step }
  | { readonly kind: "edit" }
  | { readonly kind: "resolve"; readonly resolution: ResolutionRequest }
  | { readonly kind: "revoke"; readonly approval: Approval };
