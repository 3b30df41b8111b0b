#!/bin/sh
# Checks every invariant of the newest back-up, to be called each day: on the copy, not on the live database.
set -eu
umask 077
cd "${EXCHANGE:-/srv/exchange}"
newest=$(find "${BACKUP_DIR:-/var/backups/exchange}" -maxdepth 1 -name '[0-9]*.db' | sort | tail -n 1)
if [ -z "$newest" ]; then
  echo "exchange: there is no back-up" >&2
  exit 1
fi
if ! node dist/admin.js verify "$newest" > "$newest.verify"; then
  echo "exchange: $newest is WRONG, see $newest.verify" >&2
  exit 1
fi
