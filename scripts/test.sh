#!/usr/bin/env bash
# Checks the web UI, runs the tests of every module and ends with one closing line. `make test` calls it with the binaries built and the
# services started; TESTREPORT names the program that summarizes the events.
#
# The race detector checks the packages of the root module that use package sync, except the language packages and the model of the
# dispatchers, which compute a lot, and except the tests that use SQLite: `make race` checks those. The Temporal server would take ten
# minutes more to compile with the detector, so its module is not checked.
set -uo pipefail
cd "$(dirname "$0")/.."

status=0

# events MODULE FLAGS… runs go test in one module and prints its events. Without the tables for debuggers, each of the 170 test
# programs is linked in two thirds of the time; panics and races are reported with files and lines all the same.
events() {
	local folder=$1
	shift
	(cd "${folder}" && GOWORK=off go test -json -count=1 -timeout=20m -ldflags='-s -w' "$@") || status=1
}

# raced prints the packages of the root module that the race detector checks.
raced() {
	local sqlite
	sqlite=$(scripts/sqlite-packages.sh) || return 1
	GOWORK=off go list -f '{{$package := .ImportPath}}{{range .Imports}}{{if or (eq . "sync") (eq . "sync/atomic") (eq . "golang.org/x/sync/errgroup")}}{{$package}}{{"\n"}}{{end}}{{end}}' \
		./... | sort -u | grep -v -e /signalbox/dsl -e /dispatch/internal/model | grep -vxF "${sqlite}"
}

# without_detector runs the tests of the other packages, with the flags of `make build`, which has compiled most of it.
without_detector() {
	local with packages
	with=$(raced) || return 1
	packages=$(GOWORK=off go list ./... | grep -vxF "${with}") || return 1
	# shellcheck disable=SC2086 # one word per package
	CGO_ENABLED=0 events . -trimpath ${packages}
	return "${status}"
}

# with_detector runs the tests of the packages that the race detector checks.
with_detector() {
	local packages
	packages=$(raced) || return 1
	# shellcheck disable=SC2086 # one word per package
	detected ${packages}
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

# suites runs the black-box tests. Those that keep the processors busy or measure times run one after the other, the rest side by side,
# because they wait most of the time. The flags are those of `make build`, so that the Temporal server is compiled once for both.
suites() {
	local busy others
	busy=$(cd test && GOWORK=off go list ./bounded ./connection ./dispatch ./integration ./operations ./outage) || return 1
	others=$(cd test && GOWORK=off go list ./... | grep -vxF "${busy}") || return 1
	# shellcheck disable=SC2086 # one word per package
	CGO_ENABLED=0 events test -trimpath -p=2 ${others}
	# shellcheck disable=SC2086
	CGO_ENABLED=0 events test -trimpath -p=1 ${busy}
}

# all prints the events of all tests of Go, those of without_detector from its file.
all() {
	cat "${early}"
	[ "${early_failed}" = no ] || status=1
	with_detector || status=1
	for module in $(scripts/modules.sh); do
		case "${module}" in
		.) ;;
		./test) suites || status=1 ;;
		*) CGO_ENABLED=0 events "${module}" -trimpath ./... ;;
		esac
	done
	CGO_ENABLED=0 events tools ./testreport ./protoimports ./dashboards
	return "${status}"
}

# once_more runs the named tests again, one after the other.
once_more() {
	local package test folder
	while read -r package test; do
		folder=${package#"$(GOWORK=off go list -m)"/}
		case "${folder%%/*}" in
		test | devserver | tools) CGO_ENABLED=0 events "${folder%%/*}" -trimpath -run "^${test}\$" "${package}" ;;
		*)
			if raced | grep -qxF "${package}"; then
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

# Some packages without race detector wait for Postgres, and the checks of the web UI compute: they run side by side.
# The process group of its own is for an end at Ctrl-C.
early=${PWD}/.build/early.json
trap 'kill -- -"${background}" 2>/dev/null' EXIT
set -m
without_detector >"${early}" 2>&1 &
background=$!
set +m

# A failure is reported at once and again at the end, so that it is neither late nor overlooked.
ui=passed
scripts/ui.sh check || ui=failed
early_failed=no
wait "${background}" || early_failed=yes

again=${PWD}/.build/again
rm -f "${again}"
if ! all 2>&1 | "${TESTREPORT:?is not set; run make test}" --again "${again}"; then
	[ -s "${again}" ] || exit 1
	echo
	echo "A busy machine may exceed a time limit, so these tests run once more, alone:"
	cat "${again}"
	once_more 2>&1 | "${TESTREPORT}" || exit 1
	sed 's/$/: failed once and passed alone; what it printed the first time is above/; s/^/unsteady  /' "${again}"
fi

scripts/ui.sh e2e short || exit 1

# A few seconds for each target; `make prove` takes an hour.
scripts/fuzz.sh 5000x plain || exit 1

if [ "${ui}" = failed ]; then
	echo "signalbox: the checks of the web UI failed; their output is above, before that of the Go tests." >&2
	exit 1
fi
