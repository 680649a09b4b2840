#!/usr/bin/env bash
# Runs deploy/compose/compose.yaml in containers, from images that are built here: none is pulled.
#
# It uses the Docker engine that `docker info` reaches. Without one, as root, it starts dockerd with its data in .build/compose and stops it.
# On Debian: apt-get install --no-install-recommends docker.io docker-compose debootstrap
set -euo pipefail
cd "$(dirname "$0")/.."

folder="${PWD}/.build/compose"
for program in docker debootstrap; do
	command -v "${program}" >/dev/null || { echo "compose-test: ${program} is missing; on Debian: apt-get install --no-install-recommends docker.io docker-compose debootstrap" >&2; exit 1; }
done
mkdir -p "${folder}"

engine=""
stop() {
	[ -n "${engine}" ] && kill "${engine}" 2>/dev/null && wait "${engine}" 2>/dev/null
	return 0
}

if ! docker info >/dev/null 2>&1; then
	if [ "$(id -u)" != 0 ] || ! command -v dockerd >/dev/null; then
		echo "compose-test: no Docker engine answers; start one, or run this as root with dockerd installed" >&2
		exit 1
	fi
	export DOCKER_HOST="unix://${folder}/docker.sock"
	dockerd --host "${DOCKER_HOST}" --data-root "${folder}/docker" --exec-root "${folder}/exec" --pidfile "${folder}/docker.pid" >"${folder}/dockerd.log" 2>&1 &
	engine=$!
	trap stop EXIT
	trap 'exit 130' INT TERM
	for _ in $(seq 120); do
		docker info >/dev/null 2>&1 && break
		kill -0 "${engine}" 2>/dev/null || { tail -n 5 "${folder}/dockerd.log" >&2; exit 1; }
		sleep 0.5
	done
fi

scripts/compose-images.sh >"${folder}/images.env"
cd test
SIGNALBOX_COMPOSE_IMAGES="${folder}/images.env" GOWORK=off CGO_ENABLED=0 GOFLAGS=-trimpath \
	go test ./packaging -count=1 -parallel=1 -v -timeout 1h -run "${RUN:-Containers}"
