#!/usr/bin/env bash
# Runs the suites several times with a quarter, half and two processors, without a second chance for failed tests, and prints the tests that
# failed in a run. It fails when there is one that test/unsteady.txt does not name. `make steady` calls it, as root, with the binaries built
# and the services started, which run outside of the limits; TESTREPORT names the program that adds up the events.
#
#   SUITES         packages, from the root of the repository (test/connection internal/dispatcher/...); all
#   STEADY_RUNS    how often each speed is run; 5
#   STEADY_SHARES  the speeds in processors; "0.25 0.5 2"
set -uo pipefail
cd "$(dirname "$0")/.."

runs=${STEADY_RUNS:-5} shares=${STEADY_SHARES:-0.25 0.5 2} suites=${SUITES:-test/... ./... devserver/...}
folder=${PWD}/.build/steady
rm -rf "${folder}"

# A limit that cannot be set would fail each package.
scripts/processors.sh 1 true || exit 1

# packages MODULE prints the packages of the suites that are in a module, as its go.mod names them.
packages() {
	local module=$1 suite
	for suite in ${suites}; do
		case "${suite}" in
		test/* | devserver/*) [ "${suite%%/*}" != "${module}" ] || echo "./${suite#*/}" ;;
		*) [ "${module}" != . ] || echo "./${suite#./}" ;;
		esac
	done
}

# events SHARE prints the events of one run of the suites, one package at a time. Each test program runs with the share, all that it starts
# included; the compiler runs without a limit.
events() {
	local module named
	for module in test . devserver; do
		named=$(packages "${module}")
		[ -n "${named}" ] || continue
		# shellcheck disable=SC2086 # one word per package
		(cd "${module}" && GOWORK=off CGO_ENABLED=0 go test -json -count=1 -p=1 -timeout=4h -vet=off -trimpath -ldflags='-s -w' \
			-exec "${OLDPWD}/scripts/processors.sh $1" ${named})
	done
}

for run in $(seq "${runs}"); do
	for share in ${shares}; do
		mkdir -p "${folder}/${share}"
		echo "Run ${run} of ${runs} with ${share} processors"
		events "${share}" 2>&1 | tee "${folder}/${share}/${run}.json" | "${TESTREPORT:?is not set; run make steady}" | grep -E '^(FAIL|[0-9]+ tests passed)'
	done
done
"${TESTREPORT}" steady --exceptions test/unsteady.txt "${folder}"
