#!/bin/sh
# Checks every invariant of the newest back-up, to be called each day: on the copy, not on the live database. Ends with 1
# where there is none, where it is older than MAX_AGE_MINUTES (default: three hours), or where it is wrong.
set -eu
umask 077
cd "${EXCHANGE:-/srv/exchange}"
newest=$(find "${BACKUP_DIR:-/var/backups/exchange}" -maxdepth 1 -name '[0-9]*.db' | sort | tail -n 1)
if [ -z "$newest" ]; then
  echo "exchange: there is no back-up" >&2
  exit 1
fi
# Its name says when it was made.
stamp=$(basename "$newest" .db)
made=$(date -u -d "$(echo "$stamp" | sed 's/^\(....\)\(..\)\(..\)T\(..\)\(..\)\(..\)Z$/\1-\2-\3 \4:\5:\6/')" +%s) || {
  echo "exchange: $newest does not say when it was made" >&2
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
