#!/bin/sh
# Backs up the running exchange; run it every hour. Hourly copies are kept for two days, one per day for a month.
# Each backup is four files of one name: .db (the tables), .journal.db (the log), .keys.tar and .json. The .db appears last and
# complete. All share the folder log, with the archives of the log: nothing deletes those. A failed backup leaves nothing else
# behind; the next one deletes what a killed one left.
set -eu
umask 077
export DATA_DIR="${DATA_DIR:-/var/lib/prediction-exchange}"
to="${BACKUP_DIR:-/var/backups/exchange}"
cd "${EXCHANGE:-/srv/exchange}"
mkdir -p "$to/daily" "$to/log"
if [ ! -e "$to/daily/log" ]; then ln -s ../log "$to/daily/log"; fi

# Delete what a killed backup left, and companion files without their copy.
find "$to" -type f -name '*.part' -mmin +60 -delete
find "$to" -path "$to/log" -prune -o -type f \( -name '[0-9]*.json' -o -name '[0-9]*.keys.tar' -o -name '[0-9]*.journal.db' \) \
  -mmin +60 -print | while read -r file; do
  copy=${file%.json}
  copy=${copy%.keys.tar}
  copy=${copy%.journal.db}.db
  if [ ! -e "$copy" ]; then rm -f "$file"; fi
done

name=$to/$(date -u +%Y%m%dT%H%M%SZ)
today=$to/daily/$(date -u +%Y%m%d)
if [ -e "$name.keys.tar" ]; then
  echo "exchange: another backup started in this second" >&2
  exit 1
fi
making=$name
undo() {
  if [ -n "$making" ]; then rm -f "$making.db" "$making.journal.db" "$making.keys.tar" "$making.json" "$making".*.part; fi
}
trap undo EXIT
trap 'exit 1' HUP INT TERM

tar -C "$DATA_DIR" -cf "$name.keys.tar" keys
node dist/admin.js backup "$name.db" > "$name.json"
making=

if [ ! -e "$today.db" ]; then
  making=$today
  cp "$name.json" "$today.json"
  cp "$name.keys.tar" "$today.keys.tar"
  cp "$name.journal.db" "$today.journal.db"
  cp "$name.db" "$today.db.part"
  mv "$today.db.part" "$today.db"
  making=
fi
find "$to" -maxdepth 1 -type f -name '[0-9]*' -mtime +2 -delete
find "$to/daily" -type f -name '[0-9]*' -mtime +31 -delete
