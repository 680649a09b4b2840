#!/usr/bin/env bash
# Changes the code of packages, one place at a time, and lists the changes that the tests of the same package do not notice.
#
#   mutate.sh GREMLINS PACKAGE…    e.g. mutate.sh .build/bin/gremlins ./internal/netguard
#
# It works on a copy of the root module. It exits with 1 if the tests of a package notice less than 80 % of the changes; changes of code that
# no test reaches count as not noticed.
set -euo pipefail
cd "$(dirname "$0")/.."

gremlins=$(realpath "$1")
shift
copy=$(mktemp -d)
trap 'chmod -R u+w "${copy}"; rm -rf "${copy}"' EXIT
git ls-files -z --cached --others --exclude-standard -- . ':!ui' ':!test' ':!devserver' ':!tools' ':!docs/images' |
	tar --null --files-from=- --create --ignore-failed-read | tar --extract --directory "${copy}"

# Without paths, packages that are not changed are those that other builds left in the cache. Each mutant is compiled and linked, so vet and
# debug information are left out.
export GOWORK=off CGO_ENABLED=0 GOFLAGS="-trimpath -vet=off -ldflags=-s"
cd "${copy}"
status=0
for package in "$@"; do
	echo "${package}"
	# Tests that take milliseconds get 30 times that, since each mutant is built within the same time. Go counts no coverage of constants and
	# of the expressions of "case", so their mutants, which are reported as not covered, are left out.
	"${gremlins}" unleash --workers 1 --timeout-coefficient 30 --invert-logical --invert-loopctrl "${package}" >mutants ||
		{ cat mutants && exit 1; }
	awk -v folder="${package}" '
		/ at [^ ]+:[0-9]+:[0-9]+$/ {
			split($NF, at, ":"); line = ""; constants = 0; file = folder "/" at[1]
			for (n = 1; n <= at[2]; n++) {
				if (line ~ /^[ \t]*\)/) constants = 0
				getline line <file
				if (line ~ /^[ \t]*const \(/) constants = 1
			}
			close(file)
			if (/^ *NOT COVERED/ && (constants || line ~ /^[ \t]*(case|const) /)) next
			if (/^ *(NOT VIABLE|SKIPPED)/) next
			all++
			if (/^ *(LIVED|NOT COVERED)/) { print; next }
			noticed++
		}
		END { printf "  noticed: %d of %d\n", noticed, all; exit noticed < 0.8 * all }' mutants || status=1
done
exit "${status}"
