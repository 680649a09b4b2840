#!/usr/bin/env bash
# Builds the server of the previous release, which the tests of rolling deploys run beside this one, and prints its path.
# scripts/previous-release names the commit. When that commit is not in the repository (a shallow clone), it prints nothing and explains why on standard error.
set -euo pipefail
cd "$(dirname "$0")/.."

release=$(cat scripts/previous-release)
binary=${PWD}/.build/previous/${release}/signalbox-server
if [ ! -x "${binary}" ]; then
	if ! git cat-file -e "${release}^{commit}" 2>/dev/null; then
		echo "previous.sh: commit ${release} is not in this clone; rolling deploys are not tested. git fetch --unshallow brings it." >&2
		exit 0
	fi
	source=$(mktemp -d)
	trap 'rm -rf "${source}"' EXIT
	git archive "${release}" | tar -x -C "${source}"
	mkdir -p "$(dirname "${binary}")"
	(cd "${source}" && GOWORK=off CGO_ENABLED=0 GOFLAGS=-trimpath go build -ldflags '-s -w' -o "${binary}" ./cmd/signalbox) >&2
fi
echo "${binary}"
