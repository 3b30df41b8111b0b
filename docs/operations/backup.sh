#!/bin/sh
# A back-up of the running exchange, to be called each hour: hourly copies are kept two days, one a day a month.
set -eu
umask 077
export DATA_DIR="${DATA_DIR:-/var/lib/prediction-exchange}"
to="${BACKUP_DIR:-/var/backups/exchange}"
cd "${EXCHANGE:-/srv/exchange}"

name=$to/$(date -u +%Y%m%dT%H%M%SZ)
mkdir -p "$to/daily"
node dist/admin.js backup "$name.db" > "$name.json"
tar -C "$DATA_DIR" -cf "$name.keys.tar" keys
today=$to/daily/$(date -u +%Y%m%d)
if [ ! -e "$today.db" ]; then
  cp "$name.json" "$today.json"
  cp "$name.keys.tar" "$today.keys.tar"
  cp "$name.db" "$today.part"
  mv "$today.part" "$today.db"
fi
find "$to" -maxdepth 1 -type f -name '[0-9]*' -mtime +2 -delete
find "$to/daily" -type f -mtime +31 -delete
