#!/bin/sh
# Creates the databases and the roles. The image runs it once, when the volume is empty.
set -eu

# run DATABASE ARGUMENT…: psql as the superuser, by the socket.
run() {
	database=$1
	shift
	psql --username "${POSTGRES_USER:-postgres}" --dbname "$database" -q -v ON_ERROR_STOP=1 "$@"
}

# password ROLE FILE
password() {
	run postgres -v role="$1" -v password="$(cat "$2")" <<-'SQL'
		ALTER ROLE :"role" PASSWORD :'password';
	SQL
}

run postgres <<-'SQL'
	CREATE DATABASE signalbox;
	CREATE ROLE temporal LOGIN;
	CREATE DATABASE temporal OWNER temporal;
	CREATE DATABASE temporal_visibility OWNER temporal;
	REVOKE ALL ON DATABASE temporal, temporal_visibility FROM PUBLIC;
SQL
run signalbox -f /etc/signalbox/roles.sql

password temporal /run/secrets/temporal_db_password
password signalbox_owner /run/secrets/signalbox_owner_db_password
password signalbox /run/secrets/signalbox_db_password
