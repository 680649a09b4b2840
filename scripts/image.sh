#!/usr/bin/env bash
# Packs bin/signalbox-server and this machine's certificate authorities into an image, without pulling one.
#
#   image.sh TAG     for example signalbox:local; the engine is $DOCKER (docker)
set -euo pipefail
cd "$(dirname "$0")/.."

tag=${1:?usage: image.sh TAG}
authorities=/etc/ssl/certs/ca-certificates.crt
[ -x bin/signalbox-server ] || { echo "image: bin/signalbox-server is missing: run make build" >&2; exit 1; }
[ -s "${authorities}" ] || { echo "image: ${authorities} is missing: install the package ca-certificates" >&2; exit 1; }

context=$(mktemp -d)
trap 'rm -rf "${context}"' EXIT
mkdir -p "${context}/etc/ssl/certs" "${context}/state" "${context}/licences"
cp bin/signalbox-server "${context}/"
cp LICENSE "${context}/licences/"
bin/signalbox-server version --licences >"${context}/licences/others.txt"
cp "${authorities}" "${context}/etc/ssl/certs/"
chmod -R u=rwX,go=rX "${context}"
"${DOCKER:-docker}" build --quiet -f deploy/docker/Dockerfile --target prebuilt -t "${tag}" "${context}"
