/** Runs before each test file: what the file starts and does not stop ends with it. */
import { afterAll } from "vitest";
import { endFile } from "./support/file-end.ts";

// Registered first, it runs last, after the file's own hooks.
afterAll(endFile);
