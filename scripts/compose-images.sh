#!/usr/bin/env bash
# Builds the images with which make compose-test runs deploy/compose/compose.yaml, without pulling one: Signalbox from bin, all others from
# Debian's packages and from Temporal's sources. Prints the variables that name them. Grafana is not among them: Debian does not have it.
#
# It needs root, debootstrap and a Docker engine. Everything is kept in .build/compose, so that a second call takes seconds.
set -euo pipefail
cd "$(dirname "$0")/.."

folder="${PWD}/.build/compose"
root="${folder}/root"
context="${folder}/context"
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
docker=${DOCKER:-docker}
server_version=$(cd devserver && GOWORK=off go list -m -f '{{.Version}}' go.temporal.io/server)

mkdir -p "${context}" "${folder}/bin"

if [ ! -f "${folder}/root.done" ]; then
	echo "Unpacking Debian's packages into ${root}." >&2
	rm -rf "${root}"
	debootstrap --variant=minbase \
		--include=netcat-openbsd,wget,postgresql,redis-server,prometheus,prometheus-alertmanager bookworm "${root}" "${mirror}" >"${folder}/debootstrap.log" 2>&1 ||
		{ tail -n 5 "${folder}/debootstrap.log" >&2; exit 1; }
	touch "${folder}/root.done"
fi
if ! "${docker}" image inspect signalbox-test-debian:local >/dev/null 2>&1; then
	tar -C "${root}" --exclude=./var/cache --exclude=./usr/share/doc --exclude='./usr/lib/llvm-*' --exclude='./usr/lib/x86_64-linux-gnu/libLLVM*' -c . | "${docker}" import - signalbox-test-debian:local >&2
fi

# Temporal's server and the tool for its schema, of the version and with the dependencies that bin/signalbox embeds, so that most of it is
# compiled already. The copy of go.mod takes the further dependencies of its databases.
echo "Building Temporal ${server_version}." >&2
cp devserver/go.mod devserver/go.sum "${folder}/"
export GOWORK=off CGO_ENABLED=0 GOFLAGS=-trimpath
(cd devserver && go build -modfile="${folder}/go.mod" -mod=mod -ldflags '-s -w' -o "${folder}/bin/" \
	go.temporal.io/server/cmd/server go.temporal.io/server/cmd/tools/sql)
(cd test && go build -ldflags '-s -w' -o "${folder}/bin/" ./packaging/namespace)
cp "${folder}/bin/server" "${context}/temporal-server"
cp "${folder}/bin/sql" "${context}/temporal-sql-tool"
cp "${folder}/bin/namespace" "${context}/temporal"
rm -rf "${context}/schema"
mkdir -p "${context}/schema/postgresql"
cp -r --no-preserve=mode "$(cd devserver && go list -m -f '{{.Dir}}' go.temporal.io/server)/schema/postgresql/v12" "${context}/schema/postgresql/"
cp test/packaging/images/* "${context}/"

for image in postgres redis prometheus alertmanager temporal; do
	"${docker}" build --quiet --target "${image}" -t "signalbox-test-${image}:local" "${context}" >&2
	echo "${image^^}_IMAGE=signalbox-test-${image}:local"
done
echo "TEMPORAL_ADMIN_TOOLS_IMAGE=signalbox-test-temporal:local"
scripts/image.sh signalbox-test:local >&2
echo "SIGNALBOX_IMAGE=signalbox-test:local"
