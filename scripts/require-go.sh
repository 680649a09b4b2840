#!/usr/bin/env bash
# Stops with a clear message unless there is a Go toolchain that every module here accepts.
set -euo pipefail
cd "$(dirname "$0")/.."

want=$(awk '$1 == "go" {print $2}' go.mod ./*/go.mod | sort -V | tail -n 1)
hint="Get Go ${want} or newer from https://go.dev/dl/ and put it on the PATH."

if ! command -v go >/dev/null; then
	echo "signalbox: Go is not installed. ${hint}" >&2
	exit 1
fi
have=$(GOWORK=off go env GOVERSION 2>/dev/null | sed -E 's/^go//; s/[ -].*//')
if [ -z "${have}" ] || [ "$(printf '%s\n%s\n' "${want}" "${have}" | sort -V | head -n 1)" != "${want}" ]; then
	# An old Go that may fetch toolchains reports the fetched version; only a Go that may not gets here.
	echo "signalbox: Go ${have:-of unknown version} is too old. ${hint}" >&2
	exit 1
fi
