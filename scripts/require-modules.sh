#!/usr/bin/env bash
# Downloads the Go modules of each folder named as an argument, or stops with a clear message.
set -euo pipefail
cd "$(dirname "$0")/.."

for folder in "$@"; do
	if ! output=$(cd "${folder}" && GOWORK=off go mod download 2>&1); then
		echo "${output}" | tail -n 3 >&2
		echo "signalbox: the Go modules of ${folder} could not be downloaded (GOPROXY=$(go env GOPROXY))." >&2
		echo "signalbox: check the network, or set GOPROXY to a module proxy you can reach, and run make again." >&2
		exit 1
	fi
done
