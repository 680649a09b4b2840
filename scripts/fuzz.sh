#!/usr/bin/env bash
# Fuzzes every target of the repository, one after the other: for DURATION in all (for example 60s, 30m or 1h), or with COUNT inputs
# each (for example 10000x).
# A failing target leaves its input in testdata/fuzz of its package: commit it, so that `make test` runs it from then on.
#
# With "plain" the targets are built with the flags of `make build`, without instrumentation for coverage, so little is compiled again. In
# a run of a few seconds, the inputs in testdata/fuzz, which long runs have found, lead to more code than the coverage collected in that
# time.
#
# Go before 1.27 may report "context deadline exceeded" as the failure of a target when its duration is over (go.dev/issue/75804).
# No input has failed then, so this script does not count it. A count of inputs has no deadline.
set -euo pipefail
cd "$(dirname "$0")/.."

length=${1:?"usage: scripts/fuzz.sh DURATION|COUNT [plain], for example 60s, 30m, 1h or 10000x"}
plain=${2:-}
seconds=""
case ${length} in
*h) seconds=$((${length%h} * 3600)) ;;
*m) seconds=$((${length%m} * 60)) ;;
*s) seconds=${length%s} ;;
*x) ;;
*) echo "fuzz: \"${length}\" is neither a duration nor a count: write 60s, 30m, 1h or 10000x" >&2 && exit 2 ;;
esac

targets=() # module:package:target
for module in $(scripts/modules.sh); do
	while IFS=: read -r file line; do
		name=${line#func }
		package=$(dirname "${file#./}")
		targets+=("${module}:./${package}:${name%%(*}")
	done < <(cd "${module}" && grep -rHo --include='*_test.go' --exclude-dir=.build --exclude-dir=node_modules '^func Fuzz[A-Za-z0-9_]*(' . | sort |
		{ if [ "${module}" = . ]; then grep -vE '^\./(test|devserver|tools)/' || true; else cat; fi; })
done
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: no target found" >&2 && exit 1; }

if [ -n "${seconds}" ]; then
	each=$((seconds / ${#targets[@]}))
	[ "${each}" -gt 0 ] || each=1
	each=${each}s
	echo "Fuzzing ${#targets[@]} targets for ${each} each."
else
	each=${length}
	echo "Fuzzing ${#targets[@]} targets with ${each%x} inputs each."
fi
built=$(mktemp -d) # programs of plain runs, the inputs that they find, and what targets print
trap 'rm -rf "${built}"' EXIT

# fuzz MODULE PACKAGE TARGET fuzzes one target.
fuzz() {
	local flags=(-run '^$' -fuzz "^$3\$" -fuzztime "${each}" -fuzzminimizetime 2s)
	if [ -z "${plain}" ]; then
		cd "$1" && go test "$2" "${flags[@]}"
		return
	fi
	cd "$1" && go test -c -trimpath -ldflags='-s -w' -o "${built}/$3.test" "$2" && cd "$2" &&
		"${built}/$3.test" "${flags[@]/#-/-test.}" -test.fuzzcachedir "${built}/cache" 2>&1 |
		{ grep -v '^warning: the test binary was not built with coverage' || true; }
}
export GOWORK=off CGO_ENABLED=0

# only_deadline reports whether the one failure in the file is that the duration was over.
only_deadline() {
	[ -n "${seconds}" ] && grep -q '^ *context deadline exceeded$' "$1" && ! grep -qE 'Failing input written|panic:|Error Trace' "$1"
}

failed=()
for target in "${targets[@]}"; do
	IFS=: read -r module package name <<<"${target}"
	echo "== ${package} ${name}"
	if (fuzz "${module}" "${package}" "${name}") 2>&1 | tee "${built}/${name}.log"; then
		continue
	fi
	if only_deadline "${built}/${name}.log"; then
		echo "fuzz: no input failed; the duration of ${name} was over while an input was being tried"
	else
		failed+=("${package} ${name}")
	fi
done
if [ ${#failed[@]} -gt 0 ]; then
	printf 'fuzz: %s failed\n' "${failed[@]}" >&2
	exit 1
fi
echo "fuzz: no target failed"
