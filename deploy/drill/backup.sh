#!/bin/sh
# Backs up a gateway with the embedded API server, also while it serves: everything that a restore needs.
#   backup.sh DATA_DIR TARGET
# TARGET, a new folder, then has
#   objects.db   the store; Secrets in it are encrypted
#   secrets/     the key that decrypts them, and the CAs with their keys: as secret as the gateway itself. Best kept elsewhere
#   SHA256SUMS
# It appears when it is complete. PORTCULLIS: the program, if it is not on PATH. STORE_KEY_FILE: as --store-key-file of the gateway.
set -eu
umask 077
[ $# -eq 2 ] || { echo "usage: backup.sh DATA_DIR TARGET" >&2; exit 2; }
data=$1 target=$2
[ ! -e "$target" ] || { echo "error: $target exists already; name a new folder" >&2; exit 1; }
[ -e "$data/control/objects.db" ] || { echo "error: there is no store in $data; name the --data-dir of the gateway" >&2; exit 1; }
work=$target.unfinished
rm -rf "$work"
mkdir -p "$work/secrets"
trap 'rm -rf "$work"' EXIT

"${PORTCULLIS:-portcullis}" control backup --data-dir "$data" "$work/objects.db" >/dev/null
cp -p "${STORE_KEY_FILE:-$data/control/store.key}" "$work/secrets/store.key"
cp -rp "$data/control/pki" "$work/secrets/control-pki"
# Only where the gateway makes its own certificate: without --tls-cert-file.
[ ! -d "$data/pki" ] || cp -rp "$data/pki" "$work/secrets/pki"
(cd "$work" && find . -type f ! -name SHA256SUMS -exec sha256sum {} + >SHA256SUMS)
mv "$work" "$target"
echo "$target is complete"
