#!/bin/sh
# Tries a backup of backup.sh: would it save you? On any machine, also beside a gateway that serves.
#   drill.sh BACKUP
# It restores the backup into a temporary folder, starts a gateway of it on ports of loopback, waits until that is ready and its objects can
# be read, and then shows what a lost key and a damaged store look like. That gateway probes the servers of the clusters, as every gateway
# does; it takes no settings from the environment, and writes to nothing but the temporary folder.
# Exit code 0: yes. PORTCULLIS: the program, if it is not on PATH. Objects are listed where kubectl is.
set -eu
umask 077
[ $# -eq 1 ] || { echo "usage: drill.sh BACKUP" >&2; exit 2; }
portcullis=${PORTCULLIS:-portcullis}
work=$(mktemp -d "${TMPDIR:-/tmp}/portcullis-drill.XXXXXX")
pid=

end() {
  [ -z "$pid" ] || { kill "$pid" 2>/dev/null && wait "$pid"; } || :
  rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# start NAME: a gateway of $work/NAME, its log in $work/NAME.log, its process in $pid
start() {
  env -i PATH="$PATH" HOME="$work" "$portcullis" serve --source embedded --data-dir "$work/$1" --threads 1 --drain-timeout 1s \
    --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --control-listen 127.0.0.1:0 >/dev/null 2>"$work/$1.log" &
  pid=$!
}

# refused NAME: starts a gateway that has to end with an error, and prints it
refused() {
  start "$1"
  if wait "$pid"; then fail "a gateway has started with $1"; fi
  pid=
  grep '^error: ' "$work/$1.log" || { tail -5 "$work/$1.log" >&2; fail "no error was shown for $1"; }
}

"$(dirname "$0")/restore.sh" "$1" "$work/restored" >/dev/null || fail "it cannot be restored"
for name in lost-key damaged-store; do cp -rp "$work/restored" "$work/$name"; done
echo "restored: $(find "$work/restored" -type f | wc -l) files"

start restored
seconds=0
until grep -q '^portcullis is ready: ' "$work/restored.log"; do
  kill -0 "$pid" 2>/dev/null || { grep '^error: ' "$work/restored.log" >&2; fail "the gateway has ended"; }
  seconds=$((seconds + 1))
  [ $seconds -lt 120 ] || { tail -5 "$work/restored.log" >&2; fail "the gateway is not ready after two minutes"; }
  sleep 1
done
grep '^portcullis is ready: ' "$work/restored.log" | sed 's/; API server.*//'
kubeconfig=$work/restored/control/pki/admin.kubeconfig
if command -v kubectl >/dev/null; then
  HOME=$work kubectl --kubeconfig "$kubeconfig" get namespaces,secrets,upstreamclusters,podprotectors -A -o name >"$work/objects" ||
    fail "its objects cannot be read"
  sed 's,/.*,,' "$work/objects" | sort | uniq -c
else
  echo "kubectl is not on PATH: objects are not listed"
fi
kill "$pid"
wait "$pid" || fail "the gateway has not ended well: $(tail -1 "$work/restored.log")"
pid=

echo "without the key:"
rm "$work/lost-key/control/store.key"
refused lost-key
echo "with half of the store:"
store=$work/damaged-store/control/objects.db
head -c $(($(wc -c <"$store") / 2)) "$store" >"$store.half"
mv "$store.half" "$store"
refused damaged-store
echo "the backup is good"
