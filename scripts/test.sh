#!/usr/bin/env bash
# Checks the web UI, runs the tests of every module and ends with two closing lines: what passed, and how many tests failed first and passed
# alone. .build/tests.json has the same as JSON. `make test` calls it with the binaries built and the services started; TESTREPORT names the
# program that summarizes the events.
#
# The suites that measure times or load the platform wait for half of their time. They run one after the other, and the other tests of Go
# beside them with a lower priority, so that those use what they leave of the processors. The tests in a browser follow: Chromium sets its own
# priorities.
set -uo pipefail
cd "$(dirname "$0")/.."

status=0

# events MODULE FLAGS… runs go test in one module and prints its events. Without the tables for debuggers, each of the 220 test programs is
# linked in two thirds of the time; panics and races are reported with files and lines all the same. `make lint` vets the code: go test would
# analyze all dependencies for that, which takes minutes where they were never analyzed.
events() {
	local folder=$1
	shift
	(cd "${folder}" && GOWORK=off go test -json -count=1 -timeout=20m -vet=off -ldflags='-s -w' "$@") || status=1
}

# without_detector runs the tests of the packages that the race detector does not check here, with the flags of `make build`, which has
# compiled most of it.
without_detector() {
	local packages
	packages=$(GOWORK=off go list ./... | grep -vxF "${raced}") || return 1
	# shellcheck disable=SC2086 # one word per package
	CGO_ENABLED=0 events . -trimpath ${packages}
	return "${status}"
}

# with_detector runs the tests of the packages that it checks.
with_detector() {
	# shellcheck disable=SC2086 # one word per package
	detected ${raced}
}

# detected PACKAGE… runs tests of the root module with the race detector, where there is a C compiler. Three packages at a time use two
# processors, because some wait most of the time.
detected() {
	if [ -n "${RACE}" ]; then
		CGO_ENABLED=1 events . -trimpath -race -p=3 "$@"
	else
		CGO_ENABLED=0 events . -trimpath -p=3 "$@"
	fi
}

# The suites that measure times or load the platform.
measuring="./attack ./bounded ./connection ./dispatch ./integration ./operations ./outage"

# measuring_suites runs them, with the flags of `make build`, so that the Temporal server is compiled once for both.
measuring_suites() {
	# shellcheck disable=SC2086
	CGO_ENABLED=0 events test -trimpath -p=1 ${measuring}
	return "${status}"
}

# other_suites runs the other black-box tests.
other_suites() {
	local packages
	# shellcheck disable=SC2086
	packages=$(cd test && GOWORK=off go list ./... | grep -vxF "$(GOWORK=off go list ${measuring})") || return 1
	# shellcheck disable=SC2086
	CGO_ENABLED=0 events test -trimpath -p=2 ${packages}
}

# browser_tests FILE… runs tests of the web UI in a browser and prints their events.
browser_tests() {
	scripts/ui.sh e2e --reporter=./build/testevents.js "$@" || status=1
}

# all prints the events of all tests, those of the background from their files.
all() {
	cat "${unit}"
	[ "${unit_failed}" = no ] || status=1
	with_detector || status=1
	for module in $(scripts/modules.sh); do
		case "${module}" in
		.) ;;
		./test) other_suites || status=1 ;;
		*) CGO_ENABLED=0 events "${module}" -trimpath ./... ;;
		esac
	done
	CGO_ENABLED=0 events tools ./testreport ./protoimports ./dashboards
	tail --pid="${measured}" -n +1 -f "${suites}"
	[ ! -e "${suites}.failed" ] || status=1
	browser_tests e2e/tests/short
	return "${status}"
}

# once_more runs the named tests again, one after the other; of those in a browser, each file.
once_more() {
	local package test folder
	for package in $(grep -o '^ui/[^ ]*' "${again}" | uniq); do
		browser_tests "${package#ui/}"
	done
	while read -r package test; do
		folder=${package#"$(GOWORK=off go list -m)"/}
		case "${folder%%/*}" in
		ui) ;;
		test | devserver | tools) CGO_ENABLED=0 events "${folder%%/*}" -trimpath -run "^${test}\$" "${package}" ;;
		*)
			if grep -qxF "${package}" <<<"${raced}"; then
				detected -run "^${test}\$" "${package}"
			else
				CGO_ENABLED=0 events . -trimpath -run "^${test}\$" "${package}"
			fi
			;;
		esac
	done <"${again}"
	return "${status}"
}

RACE=yes
if ! command -v "$(go env CC)" >/dev/null; then
	RACE=""
	echo "There is no C compiler ($(go env CC)), so the tests run without the race detector."
fi

again=${PWD}/.build/again unit=${PWD}/.build/unit.json suites=${PWD}/.build/suites.json summary=${PWD}/.build/tests.json
rm -f "${again}" "${suites}.failed" "${summary}"
# The process groups of their own are for an end at Ctrl-C.
trap 'for group in ${measured:-} ${background:-}; do kill -- -"${group}" 2>/dev/null; done' EXIT
set -m
(measuring_suites || touch "${suites}.failed") >"${suites}" 2>&1 &
measured=$!
set +m
renice -n 10 $$ >/dev/null
raced=$(scripts/race-packages.sh quick) || exit 1
set -m
without_detector >"${unit}" 2>&1 &
background=$!
set +m

# A failure is reported at once and again at the end, so that it is neither late nor overlooked.
ui=passed unit_failed=no
scripts/ui.sh check || ui=failed
wait "${background}" || unit_failed=yes

tests=passed
if ! all 2>&1 | "${TESTREPORT:?is not set; run make test}" --again "${again}" --summary "${summary}"; then
	tests=failed
	if [ -s "${again}" ]; then
		echo
		echo "A busy machine may exceed a time limit, so these tests run once more, alone:"
		cat "${again}"
		once_more 2>&1 | "${TESTREPORT}" --first "${summary}" --summary "${summary}" && tests=passed
		[ "${tests}" = failed ] ||
			sed 's/$/: failed once and passed alone; what it printed the first time is above/; s/^/unsteady  /' "${again}"
	fi
fi

# A few seconds for each target; `make prove` takes an hour.
fuzz=passed
scripts/fuzz.sh 5000x plain || fuzz=failed

[ "${ui}" = passed ] || echo "signalbox: the checks of the web UI failed; their output is above." >&2
[ "${fuzz}" = passed ] || echo "signalbox: a fuzz target failed; its output is above." >&2
"${TESTREPORT}" closing "${summary}"
[ "${ui}${tests}${fuzz}" = passedpassedpassed ]
