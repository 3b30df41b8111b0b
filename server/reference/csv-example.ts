/** Examples of files. */
import { type ExportedRow, type ExportKind, exportHead, exportLines } from "../queries/export-columns.ts";

const NO_NAMES = { market: () => "", outcome: () => "" };

/** The file of a list with one row. */
export const csvExample = (kind: ExportKind, row: ExportedRow): string =>
  exportHead(kind, "fields") + exportLines(kind, "fields", [row], NO_NAMES);
