#!/usr/bin/env bash
# Generates the API's code and the dashboards into a temporary folder and compares them with the repository.
# The tests of the generators, internal/generate and devserver/dev/internal/reference, compare the reference pages and the licences.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$1

fresh=$(mktemp -d)
trap 'rm -rf "${fresh}"' EXIT
"${tools}/buf" generate -o "${fresh}"
"${tools}/buf" generate --template ui/buf.gen.yaml -o "${fresh}"
"${tools}/buf" build api -o "${fresh}/api.binpb"
GOWORK=off CGO_ENABLED=0 GOFLAGS=-trimpath go run ./internal/generate openapi \
	"${fresh}/api.binpb" api/openapi.base.yaml "${fresh}/api/openapi.yaml"
mkdir -p "${fresh}/deploy/grafana/dashboards"
"${tools}/dashboards" "${fresh}/deploy/grafana/dashboards"

status=0
while IFS= read -r -d '' file; do
	if ! cmp -s "${fresh}/${file}" "${file}"; then
		echo "verify: ${file} is not what its source generates; run make generate" >&2
		status=1
	fi
done < <(cd "${fresh}" && find api ui/src/gen deploy -type f -print0)
while IFS= read -r -d '' file; do
	if [ ! -f "${fresh}/${file}" ]; then
		echo "verify: ${file} has no proto any more; delete it" >&2
		status=1
	fi
done < <(find api/signalbox ui/src/gen \( -name '*.go' -o -name '*_pb.ts' \) -print0)
exit "${status}"
