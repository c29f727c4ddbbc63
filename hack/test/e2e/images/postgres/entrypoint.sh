#!/bin/sh
# Starts Postgres by the conventions of the official postgres image, those that a StatefulSet
# counts on: POSTGRES_USER, POSTGRES_PASSWORD or POSTGRES_PASSWORD_FILE, POSTGRES_DB, PGDATA.
set -eu

user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}

case "${1:-}" in
-*) set -- postgres "$@" ;;
esac
[ "${1:-}" = postgres ] || exec "$@"

if [ ! -s "$PGDATA/PG_VERSION" ]; then
	if [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then
		POSTGRES_PASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
	fi
	if [ -z "${POSTGRES_PASSWORD:-}" ]; then
		echo "start Postgres: there is no password: set POSTGRES_PASSWORD_FILE or POSTGRES_PASSWORD" >&2
		exit 1
	fi
	mkdir -p "$PGDATA"
	chmod 700 "$PGDATA"
	pwfile=$(mktemp)
	printf '%s\n' "$POSTGRES_PASSWORD" >"$pwfile"
	# shellcheck disable=SC2086 # the arguments are meant to be several
	initdb --username="$user" --pwfile="$pwfile" --auth-local=trust --auth-host=scram-sha-256 ${POSTGRES_INITDB_ARGS:-}
	rm -f "$pwfile"
	echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
	if [ "$database" != postgres ]; then
		# No network yet, so that no client connects to a server that is about to stop.
		pg_ctl --options="-c listen_addresses=''" --wait start >&2
		createdb --username="$user" --maintenance-db=postgres "$database"
		pg_ctl --mode=fast --wait stop >&2
	fi
fi
unset POSTGRES_PASSWORD
exec "$@"
