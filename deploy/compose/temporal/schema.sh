#!/bin/sh
# Creates or migrates Temporal's schema in both of its databases.
set -eu
SQL_PASSWORD=$(cat /run/secrets/temporal_db_password)
export SQL_PASSWORD

# migrate DATABASE SCHEMA
migrate() {
	tool="temporal-sql-tool --plugin postgres12 --endpoint postgres --port 5432 --user temporal --database $1"
	# shellcheck disable=SC2086 # one word per argument
	$tool setup-schema -v 0.0
	# shellcheck disable=SC2086
	$tool update-schema -d "/etc/temporal/schema/postgresql/v12/$2/versioned"
}

migrate temporal temporal
migrate temporal_visibility visibility
