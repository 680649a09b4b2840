#!/bin/sh
# What the official image does with an empty volume, as far as compose.yaml uses it.
set -eu
[ "$1" = postgres ] || exec "$@"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
	# shellcheck disable=SC2086 # one word per argument
	initdb -D "$PGDATA" -U postgres --pwfile="$POSTGRES_PASSWORD_FILE" --auth-local=trust $POSTGRES_INITDB_ARGS
	echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
	pg_ctl -D "$PGDATA" -w start -o '-c listen_addresses='
	for script in /docker-entrypoint-initdb.d/*.sh; do sh "$script"; done
	pg_ctl -D "$PGDATA" -m fast -w stop
fi
exec "$@" -c listen_addresses='*'
