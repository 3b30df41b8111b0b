#!/bin/sh
# A pair of boxes on this machine, to try a takeover: three nodes of nats-server and two exchanges, on loopback, in a folder that
# is deleted at the end. Run it from the repository's folder, after `npm ci`. Needs nats-server 2.10 or newer and curl.
#
#   docs/operations/standby-trial.sh            ports 8080 to 8090; PORT=9000 begins elsewhere; NATS_SERVER_PATH names the nats-server
set -eu
base=${PORT:-8080}
nats=${NATS_SERVER_PATH:-$(command -v nats-server || true)}
[ -n "$nats" ] || { echo "install nats-server 2.10 or newer, or set NATS_SERVER_PATH" >&2; exit 1; }
npm run -s build
folder=$(mktemp -d)
pids=''
finish() {
  trap '' INT TERM EXIT
  # Only what this script started.
  for pid in $pids; do kill "$pid" 2>/dev/null || true; done
  for pid in $pids; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 0' INT TERM

routes='' urls='' monitors=''
for n in 1 2 3; do
  routes="$routes${routes:+, }nats://127.0.0.1:$((base + 4 + n))"
  urls="$urls${urls:+,}nats://127.0.0.1:$((base + 1 + n))"
  monitors="$monitors${monitors:+,}http://127.0.0.1:$((base + 7 + n))"
done
for n in 1 2 3; do
  cat >"$folder/n$n.conf" <<END
server_name: n$n
listen: "127.0.0.1:$((base + 1 + n))"
http: "127.0.0.1:$((base + 7 + n))"
jetstream { store_dir: "$folder/n$n", sync_interval: always, max_file_store: 20GB }
cluster { name: trial, listen: "127.0.0.1:$((base + 4 + n))", routes: [$routes] }
END
  "$nats" -c "$folder/n$n.conf" -l "$folder/n$n.log" &
  pids="$pids $!"
done

export HOST=127.0.0.1 STANDBY_NATS="$urls" STANDBY_MONITOR="$monitors" STANDBY_SECRET="a secret of thirty-two characters, for a trial"
# Starts a box under its name, on its port; a supervisor would start it again after each end.
start_box() {
  PORT=$2 DATA_DIR=$folder/$1 STANDBY_BOX=$1 STANDBY_URL=http://127.0.0.1:$2 node dist/main.js >"$folder/$1.log" 2>&1 &
  pids="$pids $!"
  pid=$!
}
# Waits until the command succeeds, for at most a minute.
wait_for() {
  tries=0
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 240 ] || { echo "no success in a minute: $*; $folder/a.log ends with:" >&2; tail -n 5 "$folder/a.log" >&2; exit 1; }
    sleep 0.25
  done
}
is_paired() { curl -fs "http://127.0.0.1:$base/readyz" | grep -q '"alone":false'; }

start_box a "$base"
a=$pid
wait_for env DATA_DIR="$folder/a" node dist/admin.js standby promote --first
start_box b $((base + 1))
b=$pid
wait_for is_paired
echo "box a, active:   http://127.0.0.1:$base   process $a   log $folder/a.log"
echo "box b, standby:  http://127.0.0.1:$((base + 1))   process $b   log $folder/b.log"
echo "Try: kill -9 $a, then curl http://127.0.0.1:$((base + 1))/readyz. Ctrl-C ends everything."
wait "$b"
