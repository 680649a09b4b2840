#!/usr/bin/env bash
# Fuzzes every target of the repository, one after the other, for DURATION in all (for example 60s, 30m or 1h).
# A failing target leaves its input in testdata/fuzz of its package: commit it, so that `make test` runs it from then on.
#
# With "plain" the targets are built like all tests, without instrumentation for coverage, so nothing is compiled again. In a run of a
# few seconds, the inputs in testdata/fuzz, which long runs have found, lead to more code than the coverage collected in that time.
set -euo pipefail
cd "$(dirname "$0")/.."

duration=${1:?"usage: scripts/fuzz.sh DURATION [plain], for example 60s, 30m or 1h"}
plain=${2:-}
case ${duration} in
*h) seconds=$((${duration%h} * 3600)) ;;
*m) seconds=$((${duration%m} * 60)) ;;
*s) seconds=${duration%s} ;;
*) echo "fuzz: \"${duration}\" is not a duration: write 60s, 30m or 1h" >&2 && exit 2 ;;
esac

targets=() # module:package:target
for module in $(scripts/modules.sh); do
	while IFS=: read -r file line; do
		name=${line#func }
		package=$(dirname "${file#./}")
		targets+=("${module}:./${package}:${name%%(*}")
	done < <(cd "${module}" && grep -rHo --include='*_test.go' --exclude-dir=.build '^func Fuzz[A-Za-z0-9_]*(' . | sort |
		{ if [ "${module}" = . ]; then grep -vE '^\./(test|devserver|tools)/' || true; else cat; fi; })
done
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: no target found" >&2 && exit 1; }

each=$((seconds / ${#targets[@]}))
[ "${each}" -gt 0 ] || each=1
echo "Fuzzing ${#targets[@]} targets for ${each} s each."
built=$(mktemp -d) # programs of plain runs, and the inputs that they find
trap 'rm -rf "${built}"' EXIT

# fuzz MODULE PACKAGE TARGET fuzzes one target.
fuzz() {
	local flags=(-run '^$' -fuzz "^$3\$" -fuzztime "${each}s" -fuzzminimizetime 2s)
	if [ -z "${plain}" ]; then
		cd "$1" && go test "$2" "${flags[@]}"
		return
	fi
	cd "$1" && go test -c -o "${built}/$3.test" "$2" && cd "$2" &&
		"${built}/$3.test" "${flags[@]/#-/-test.}" -test.fuzzcachedir "${built}/cache" 2>&1 |
		{ grep -v '^warning: the test binary was not built with coverage' || true; }
}
export GOWORK=off CGO_ENABLED=0

failed=()
for target in "${targets[@]}"; do
	IFS=: read -r module package name <<<"${target}"
	echo "== ${package} ${name}"
	(fuzz "${module}" "${package}" "${name}") || failed+=("${package} ${name}")
done
if [ ${#failed[@]} -gt 0 ]; then
	printf 'fuzz: %s failed\n' "${failed[@]}" >&2
	exit 1
fi
echo "fuzz: no target failed"
