#!/usr/bin/env bash
# What tests need beside Go and Node.js: Postgres, Redis, Prometheus, Alertmanager, bubblewrap, and Chromium with a font.
#
#   services.sh install          installs what is missing from Debian's packages (needs root), or says what to install
#   services.sh with COMMAND…    starts Postgres and Redis on free loopback ports with their data in a temporary folder, runs COMMAND
#                                with SIGNALBOX_TEST_POSTGRES (DSN) and SIGNALBOX_TEST_REDIS (URL) set, stops both
set -euo pipefail

# postgres_bin prints the folder that holds initdb, which Debian keeps off the PATH.
postgres_bin() {
	if command -v initdb >/dev/null; then
		dirname "$(command -v initdb)"
		return
	fi
	local found=(/usr/lib/postgresql/*/bin/initdb)
	[ -x "${found[-1]}" ] && dirname "${found[-1]}"
}

missing() {
	postgres_bin >/dev/null || echo postgresql
	command -v redis-server >/dev/null || echo redis-server
	command -v promtool >/dev/null || echo prometheus
	command -v amtool >/dev/null || echo prometheus-alertmanager
	command -v bwrap >/dev/null || echo bubblewrap
	command -v "${CHROMIUM:-chromium}" >/dev/null || printf '%s\n' chromium fonts-dejavu-core
}

install() {
	local packages
	packages=$(missing | tr '\n' ' ')
	[ -z "${packages}" ] && return
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "signalbox: the tests need these packages: ${packages}" >&2
		echo "signalbox: on Debian, as root: apt-get install --no-install-recommends ${packages}" >&2
		exit 1
	fi
	echo "Installing ${packages}from the system's packages."
	export DEBIAN_FRONTEND=noninteractive
	# Run level 1 keeps the packages from starting services of their own on the default ports.
	# shellcheck disable=SC2086 # one word per package
	if ! { apt-get update -qq && RUNLEVEL=1 apt-get install -qq -y --no-install-recommends ${packages}; } >/dev/null; then
		echo "signalbox: apt-get could not install ${packages}; see its message above, check the network, run make again." >&2
		exit 1
	fi
}

# as_postgres runs a command as a user that Postgres accepts: it refuses root.
as_postgres() {
	if [ "$(id -u)" = 0 ]; then
		runuser -u postgres -- "$@"
	else
		"$@"
	fi
}

free_port() {
	local port
	while :; do
		port=$((20000 + RANDOM % 12000))
		(: <"/dev/tcp/127.0.0.1/${port}") 2>/dev/null || break
	done
	echo "${port}"
}

data=""
redis_pid=""

stop() {
	[ -n "${redis_pid}" ] && kill "${redis_pid}" 2>/dev/null && wait "${redis_pid}" 2>/dev/null
	if [ -n "${data}" ]; then
		[ -f "${data}/postgres/postmaster.pid" ] &&
			as_postgres "${bin}/pg_ctl" -D "${data}/postgres" -m immediate -s stop || true
		rm -rf "${data}"
	fi
}

start_postgres() {
	local port=$1
	as_postgres "${bin}/initdb" -D "${data}/postgres" -U signalbox -A trust -E UTF8 --no-sync >"${data}/initdb.log"
	as_postgres "${bin}/pg_ctl" -D "${data}/postgres" -l "${data}/postgres.log" -s -w start -o \
		"-c port=${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c full_page_writes=off -c max_connections=600"
}

start_redis() {
	local port=$1
	redis-server --bind 127.0.0.1 --port "${port}" --dir "${data}" --save "" --appendonly no >"${data}/redis.log" &
	redis_pid=$!
	for _ in $(seq 100); do
		(: <"/dev/tcp/127.0.0.1/${port}") 2>/dev/null && return
		kill -0 "${redis_pid}" 2>/dev/null || break
		sleep 0.05
	done
	echo "signalbox: Redis did not start:" >&2
	tail -n 5 "${data}/redis.log" >&2
	exit 1
}

with() {
	bin=$(postgres_bin)
	trap stop EXIT
	trap 'exit 130' INT TERM
	data=$(mktemp -d)
	[ "$(id -u)" = 0 ] && chown postgres "${data}"
	local postgres_port redis_port
	postgres_port=$(free_port)
	start_postgres "${postgres_port}"
	redis_port=$(free_port)
	start_redis "${redis_port}"
	export SIGNALBOX_TEST_POSTGRES="postgres://signalbox@127.0.0.1:${postgres_port}/postgres?sslmode=disable"
	export SIGNALBOX_TEST_REDIS="redis://127.0.0.1:${redis_port}"
	"$@"
}

case "${1:-}" in
install) install ;;
with) shift && with "$@" ;;
*)
	echo "usage: services.sh install | with COMMAND…" >&2
	exit 2
	;;
esac
