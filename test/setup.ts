/** Runs before each test file: what the file starts, stubs or fakes and does not undo ends with it. */
import { afterAll, vi } from "vitest";
import { endFile } from "./support/file-end.ts";

// Registered first, it runs last, after the file's own hooks.
afterAll(() => {
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  vi.useRealTimers();
  endFile();
});
