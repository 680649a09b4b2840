#!/usr/bin/env bash
# Runs the tests of every module and ends with one closing line. `make test` calls it with the binaries built and the
# services started; TESTREPORT names the program that adds up the events.
#
# The race detector runs where goroutines meet: the root module without the language packages and the model of the
# dispatchers, which are pure and compute a lot, and without the suites of the store, in which SQLite (in Go) would compute ten times
# as long; what runs on the store runs on it with the detector. The Temporal server would take ten minutes more to compile with it, so its module goes without.
set -uo pipefail
cd "$(dirname "$0")/.."

status=0

# events MODULE FLAGS… runs go test in one module, as events.
events() {
	local folder=$1
	shift
	(cd "${folder}" && GOWORK=off go test -json -count=1 -timeout=10m "$@") || status=1
}

root() {
	local plain others
	plain=$(GOWORK=off go list ./dsl/... ./dispatch/internal/model ./internal/store ./internal/store/legacy/... ./internal/store/schema) || return 1
	others=$(GOWORK=off go list ./... | grep -vxF "${plain}") || return 1
	# shellcheck disable=SC2086 # one word per package
	CGO_ENABLED=0 events . ${plain}
	if [ -n "${RACE}" ]; then
		# shellcheck disable=SC2086
		CGO_ENABLED=1 events . -race ${others}
	else
		# shellcheck disable=SC2086
		CGO_ENABLED=0 events . ${others}
	fi
}

all() {
	root || status=1
	for module in $(scripts/modules.sh); do
		[ "${module}" = . ] && continue
		# The flags of `make build`, so that the Temporal server is compiled once for both. One package at a time: each
		# starts platforms of its own, and its tests already run side by side.
		CGO_ENABLED=0 events "${module}" -trimpath -p=1 ./...
	done
	CGO_ENABLED=0 events tools ./testreport ./protoimports
	return "${status}"
}

RACE=yes
if ! command -v "$(go env CC)" >/dev/null; then
	RACE=""
	echo "There is no C compiler ($(go env CC)), so the tests run without the race detector."
fi
all 2>&1 | "${TESTREPORT:?is not set; run make test}"
