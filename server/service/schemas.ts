/** What the service says of its own health. */
import Type from "typebox";
import { closed } from "../http/schemas.ts";

export const Health = closed({ status: Type.String({ description: "ok, or the reason" }) });
