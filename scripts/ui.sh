#!/usr/bin/env bash
# The web UI in the folder ui.
#
#   ui.sh build   builds it into internal/webui/dist, unless it was built from the same sources
#   ui.sh check   checks types, layout, style, unit tests and licences
#   ui.sh e2e     tests it in Chromium against bin/signalbox, with the arguments of Vitest; "ui.sh e2e e2e/tests/short" runs what make test runs
#   ui.sh bench   measures its pages in Chromium and prints a table; "make bench ONLY=studio" publishes it
#   ui.sh shots   takes the pictures of docs/images/studio
set -euo pipefail
cd "$(dirname "$0")/.."

dist=internal/webui/dist
state=.build/ui # the sums of what was installed and built

# keep restores the file that Go needs to embed the folder; Vite empties the folder before it writes.
keep() {
	mkdir -p "${dist}"
	: >"${dist}/.keep"
}

# sources prints one sum of all files that the build reads.
sources() {
	find ui -type f -not -path '*/node_modules/*' -not -path 'ui/test-results/*' -print0 | sort -z | xargs -0 sha256sum | sha256sum
}

# setup finds Node.js and installs the packages that package-lock.json names, unless they are installed.
setup() {
	local folder lock
	folder=$(scripts/require-node.sh)
	[ -z "${folder}" ] || export PATH="${folder}:${PATH}"
	lock=$(sha256sum <ui/package-lock.json)
	[ -d ui/node_modules ] && [ "$(cat "${state}.packages" 2>/dev/null)" = "${lock}" ] && return
	echo "Installing the packages of the web UI."
	if ! (cd ui && npm ci --no-audit --no-fund --silent); then
		echo "signalbox: npm ci failed in ui (registry $(npm config get registry)); see its message above, check the network, run make again." >&2
		exit 1
	fi
	mkdir -p .build
	echo "${lock}" >"${state}.packages"
}

build() {
	local sum
	sum=$(sources)
	if [ -f "${dist}/index.html" ] && [ "$(cat "${state}.sources" 2>/dev/null)" = "${sum}" ]; then
		echo "The web UI is up to date in ${dist}."
		return
	fi
	setup
	echo "Building the web UI into ${dist}."
	trap keep EXIT
	if ! (cd ui && npm run --silent build); then
		echo "signalbox: the web UI could not be built; see the message above." >&2
		exit 1
	fi
	mkdir -p .build
	echo "${sum}" >"${state}.sources"
}

check() {
	setup
	if ! (cd ui && npm run --silent check); then
		echo "signalbox: the checks of the web UI failed; see above, and run \"npm run check\" in ui." >&2
		exit 1
	fi
}

e2e() {
	setup
	if ! (cd ui && npm run --silent e2e -- "$@"); then
		echo "signalbox: the tests of the web UI in a browser failed; see above, and run \"npm run e2e -- $*\" in ui." >&2
		exit 1
	fi
}

bench() {
	setup
	(cd ui && npm run --silent bench:studio)
}

shots() {
	setup
	(cd ui && npm run --silent screenshots)
}

case "${1:-}" in
build) build ;;
check) check ;;
e2e) e2e "${@:2}" ;;
bench) bench ;;
shots) shots ;;
*)
	echo "usage: ui.sh build | check | e2e [ARGUMENT…] | bench | shots" >&2
	exit 2
	;;
esac
