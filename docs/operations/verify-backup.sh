#!/bin/sh
# Checks the newest backup (the copy, not the live files): that its tables are what its log says, and every invariant; run it
# every day. Exits with 1 if there is no backup, if it is older than MAX_AGE_MINUTES (default: three hours), or if it is wrong.
set -eu
umask 077
cd "${EXCHANGE:-/srv/exchange}"
newest=$(find "${BACKUP_DIR:-/var/backups/exchange}" -maxdepth 1 -name '[0-9]*.db' ! -name '*.journal.db' | sort | tail -n 1)
if [ -z "$newest" ]; then
  echo "exchange: no backup found" >&2
  exit 1
fi
# The file name holds the time of the backup.
stamp=$(basename "$newest" .db)
made=$(date -u -d "$(echo "$stamp" | sed 's/^\(....\)\(..\)\(..\)T\(..\)\(..\)\(..\)Z$/\1-\2-\3 \4:\5:\6/')" +%s) || {
  echo "exchange: $newest has no valid time in its name" >&2
  exit 1
}
age=$(( ($(date -u +%s) - made) / 60 ))
if [ "$age" -gt "${MAX_AGE_MINUTES:-180}" ]; then
  echo "exchange: $newest is TOO OLD: $age minutes, at most ${MAX_AGE_MINUTES:-180}" >&2
  exit 1
fi
if ! node dist/admin.js verify "$newest" > "$newest.verify"; then
  echo "exchange: $newest is WRONG, see $newest.verify" >&2
  exit 1
fi
