"""Prints an order's life from the log: python3 log.py FILE ORDER. FILE is a journal.db, or an archive (.log.gz with its .json).
The layouts are those of engine/log/batch-format.ts and engine/ring/records.ts."""
import gzip
import json
import sqlite3
import struct
import sys
from datetime import datetime, timezone

HEADER = struct.Struct("<II5d4I32s")  # magic, version, number, at, position, last entry, exchange, records, texts, writes, ...
RECORD = struct.Struct("<8i4d")  # packed, slot, user, outcome, price, quantity, remaining, word 7, order, at, double 6, double 7
KINDS = {1: "placed", 2: "filled", 3: "canceled", 4: "reduced", 5: "amended"}
STATUSES = ["", "", "queued", "open", "partially filled", "filled", "canceled", "expired", "rejected"]


def bodies(path):
    """Yields each batch."""
    if not path.endswith(".gz"):
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        for (body,) in database.execute("SELECT body FROM batches ORDER BY number"):
            yield body
        return
    with open(path[: -len(".log.gz")] + ".json") as description:
        first = json.load(description)["members"][0][1]  # the opening comes before
    with open(path, "rb") as file:
        file.seek(first)
        batches = gzip.GzipFile(fileobj=file)
        while length := batches.read(4):
            yield batches.read(struct.unpack("<I", length)[0])


def main(path, wanted):
    for body in bodies(path):
        number, records = HEADER.unpack_from(body)[2], HEADER.unpack_from(body)[7]
        for i in range(records):
            fields = RECORD.unpack_from(body, HEADER.size + i * RECORD.size)
            packed, _, user, outcome, price, quantity, remaining, _, order, at, detail, update = fields
            kind = KINDS.get(packed & 0xFF)
            if kind is None or order != wanted:
                continue
            time = datetime.fromtimestamp(at / 1000, timezone.utc).isoformat(timespec="milliseconds")
            side, status = "buy" if packed >> 8 & 15 == 1 else "sell", STATUSES[packed >> 12 & 15]
            about = f"fill {detail:.0f}: {quantity} at {price}" if kind == "filled" else f"{quantity} at {price}"
            print(f"batch {number:.0f}, {time}: user {user} {side} outcome {outcome}, {kind} {about}, {remaining} left, {status}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
