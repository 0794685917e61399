#!/bin/sh
# Makes a data directory out of a backup of backup.sh; then start a gateway with it.
#   restore.sh BACKUP DATA_DIR
# It never overwrites a store. With --store-key-file, give the gateway BACKUP/secrets/store.key, or put it where that flag points.
set -eu
umask 077
[ $# -eq 2 ] || { echo "usage: restore.sh BACKUP DATA_DIR" >&2; exit 2; }
backup=$1 data=$2
[ -e "$backup/SHA256SUMS" ] || { echo "error: $backup is no backup of backup.sh; name the folder that it has made" >&2; exit 1; }
for file in objects.db objects.db-wal objects.db-shm; do
  [ ! -e "$data/control/$file" ] || {
    echo "error: $data has a store already; stop its gateway and move $data/control/objects.db* away" >&2
    exit 1
  }
done
(cd "$backup" && sha256sum --check --quiet --strict SHA256SUMS) || {
  echo "error: $backup is damaged; take another backup" >&2
  exit 1
}

mkdir -p "$data/control"
chmod 700 "$data" "$data/control"
cp -rp "$backup/secrets/control-pki/." "$data/control/pki"
[ ! -d "$backup/secrets/pki" ] || cp -rp "$backup/secrets/pki/." "$data/pki"
cp -p "$backup/secrets/store.key" "$data/control/store.key"
# Last: a restore that was interrupted has no store, and can be repeated.
cp -p "$backup/objects.db" "$data/control/objects.db.restoring"
mv "$data/control/objects.db.restoring" "$data/control/objects.db"
echo "$data is restored"
