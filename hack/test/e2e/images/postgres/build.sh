#!/bin/sh
# Writes a root file system (tar) with Debian's Postgres, as root: build.sh FILE
set -eu
out=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root

unshare --mount --propagation private debootstrap --variant=minbase --include=postgresql-15 bookworm "$root" >"$work/log" 2>&1 || {
	tail -n 20 "$work/log" >&2
	exit 1
}
# The official image's user has these ids.
sed -i 's/^postgres:\([^:]*\):[0-9]*:[0-9]*:/postgres:\1:999:999:/' "$root/etc/passwd"
sed -i 's/^postgres:\([^:]*\):[0-9]*:/postgres:\1:999:/' "$root/etc/group"
# CloudNativePG runs the programs of an image under these.
echo 'cloudnativepg:x:26:26::/var/lib/postgresql:/bin/sh' >>"$root/etc/passwd"
echo 'cloudnativepg:x:26:' >>"$root/etc/group"
rm -rf "$root"/var/lib/postgresql/* "$root"/var/cache/apt "$root"/var/lib/apt/lists "$root"/usr/share/doc "$root"/usr/share/man "$root"/usr/share/locale "$root"/var/log/*
mkdir -p "$root/var/lib/postgresql/data" "$root/var/run/postgresql"
chown -R 999:999 "$root/var/lib/postgresql" "$root/run/postgresql"
chmod 3777 "$root/run/postgresql"
echo "listen_addresses = '*'" >>"$root/usr/share/postgresql/15/postgresql.conf.sample"
install -m 755 "$here/entrypoint.sh" "$root/usr/local/bin/docker-entrypoint.sh"
tar --create --file "$out.next" --directory "$root" --one-file-system --sort=name --numeric-owner .
mv "$out.next" "$out"
