#!/bin/sh
# A pair of boxes on this machine, to try a takeover: three nodes of nats-server and two exchanges, on loopback, in a folder that
# is deleted at the end. Run it from the repository's folder, after `npm ci`. Needs nats-server 2.10 or newer and curl.
#
#   docs/operations/standby-trial.sh            an empty exchange
#   docs/operations/standby-trial.sh --demo     the demo's markets, bots and page, which takes a minute or two longer
#
# It uses the ports 8080 to 8090; PORT=9000 begins elsewhere. NATS_SERVER_PATH names the nats-server.
set -eu
case "${*:-}" in '' | --demo) demo=${1:-} ;; *) echo "usage: $0 [--demo]" >&2; exit 2 ;; esac
base=${PORT:-8080}
case "$base" in *[!0-9]*) echo "PORT must be a number, not \"$base\"" >&2; exit 2 ;; esac
nats=${NATS_SERVER_PATH:-$(command -v nats-server || true)}
[ -n "$nats" ] || { echo "install nats-server 2.10 or newer, or set NATS_SERVER_PATH" >&2; exit 1; }
npm run -s build
folder=$(mktemp -d)
# Only what this script started and hasn't seen end; the latest first.
pids=''
finish() {
  trap '' HUP INT TERM EXIT
  for pid in $pids; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 0' HUP INT TERM

routes='' urls_a='' urls_b='' monitors=''
for n in 1 2 3; do
  routes="$routes${routes:+, }nats://127.0.0.1:$((base + 4 + n))"
  # Each box names its own node first: a n1, b n2.
  urls_a="$urls_a${urls_a:+,}nats://127.0.0.1:$((base + 1 + n))"
  urls_b="$urls_b${urls_b:+,}nats://127.0.0.1:$((base + 2 + n % 3))"
  monitors="$monitors${monitors:+,}http://127.0.0.1:$((base + 7 + n))"
done
# Ctrl-C doesn't reach the nodes, which the boxes need to stop.
apart=$(command -v setsid || true)
for n in 1 2 3; do
  cat >"$folder/n$n.conf" <<END
server_name: n$n
listen: "127.0.0.1:$((base + 1 + n))"
http: "127.0.0.1:$((base + 7 + n))"
jetstream { store_dir: "$folder/n$n", sync_interval: always, max_file_store: 20GB }
cluster { name: trial, listen: "127.0.0.1:$((base + 4 + n))", routes: [$routes] }
END
  $apart "$nats" -c "$folder/n$n.conf" >"$folder/n$n.log" 2>&1 &
  pids="$! $pids"
  eval "n$n=$!"
done

export HOST=127.0.0.1 STANDBY_MONITOR="$monitors" STANDBY_SECRET="a secret of thirty-two characters, for a trial"
url_a=http://127.0.0.1:$base
url_b=http://127.0.0.1:$((base + 1))
# Both boxes have the same settings. The demo's: all of its bots come from one address.
export PUBLIC_URL="${PUBLIC_URL:-$url_a}"
[ -z "$demo" ] || export RATE_LIMITS='{"address": 2000, "order_address": 100000}' DEPOSIT_INSTRUCTIONS=docs/operations/deposit-instructions.txt

# Starts a box: its name, its port, its command. What it prints is in a file of its name; its process is in a variable of its name.
start_box() {
  name=$1 port=$2
  shift 2
  [ "$name" = a ] && urls=$urls_a || urls=$urls_b
  PORT=$port DATA_DIR=$folder/$name STANDBY_NATS=$urls STANDBY_BOX=$name STANDBY_URL=http://127.0.0.1:$port "$@" >>"$folder/$name.log" 2>&1 &
  pids="$! $pids"
  eval "$name=$!"
}
# Ends the script where one of these has ended: a port is in use, or a setting of the environment is wrong.
require() {
  for each; do
    eval "pid=\$$each"
    kill -0 "$pid" 2>/dev/null && continue
    echo "$each has ended; it printed:" >&2
    tail -n 5 "$folder/$each.log" >&2
    exit 1
  done
}
# Waits for at most five minutes until a command succeeds, while these processes run: their names, with spaces, and the command.
wait_for() {
  these=$1 deadline=$(($(date +%s) + 300))
  shift
  while :; do
    require $these
    "$@" && return
    [ "$(date +%s)" -lt $deadline ] || { echo "not ready within five minutes: $folder/a.log says why, and is kept" >&2; folder=''; exit 1; }
    sleep 0.25
  done
}
ready() { curl -fs --max-time 5 "$url_a/readyz" | grep -q "$1"; }
# A box without a log begins an exchange only where it is told to. That takes as long as the nodes need to find each other.
is_begun() {
  ready '"role":"active"' && return
  [ -n "$demo" ] || DATA_DIR=$folder/a node dist/admin.js standby promote --first >/dev/null 2>&1 || true
  return 1
}

if [ -n "$demo" ]; then
  start_box a "$base" node dist/bench/demo.js --standby "$url_b"
else
  start_box a "$base" node dist/main.js
fi
wait_for "n1 n2 n3 a" is_begun
start_box b $((base + 1)) node dist/main.js
wait_for "n1 n2 n3 a b" ready '"alone":false'

if [ -n "$demo" ]; then
  wait_for "a b" grep -q "^With kill -9" "$folder/a.log"
  grep -v "^With kill -9" "$folder/a.log"
  # The demo goes on without its exchange.
  a=$(sed -n 's/^With kill -9 \([0-9]*\) .*/\1/p' "$folder/a.log")
fi
echo "box a, active:   $url_a   process $a   log $folder/a.log"
echo "box b, standby:  $url_b   process $b   log $folder/b.log"
echo "Try kill -9 $a, then curl $url_b/readyz. Ctrl-C ends everything."

# As a supervisor does: what has ended is started again, and follows the other one.
again() {
  pids=$(echo " $pids " | sed "s/ $2 / /")
  start_box "$1" "$3" node dist/main.js
  eval "pid=\$$1"
  echo "box $1 has ended: started it again, process $pid"
}
while sleep 2; do
  kill -0 "$a" 2>/dev/null || again a "$a" "$base"
  kill -0 "$b" 2>/dev/null || again b "$b" $((base + 1))
done
