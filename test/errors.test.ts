/** Errors as values: which ones know where they were thrown. What a client reads of them: http/bad-input.test.ts. */
import { expect, test } from "vitest";
import { ApiError, badRequest, ErrorKind } from "../server/errors.ts";

test("a rejection has no stack trace, and the errors after it have theirs", () => {
  expect(badRequest("price: must be >= 1").stack).toBe("Error: price: must be >= 1");
  expect(new ApiError(ErrorKind.insufficientShares, "not enough").stack).not.toContain("errors.test.ts");
  expect(new Error("a bug").stack).toContain("errors.test.ts");
});

test("an internal error has a stack trace", () => {
  expect(new ApiError(ErrorKind.internal, "internal error").stack).toContain("errors.test.ts");
});
