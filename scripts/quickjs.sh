#!/bin/sh
# Fetches QuickJS-ng as WebAssembly, which internal/sandbox/javascript embeds, from the npm package quickjs-wasi, and
# checks its SHA-256. To upgrade, set the version, run it once, check what has changed, and set the sum that it prints.
# Then run make generate: the texts of licences name the version.
set -eu
version=3.7.0
sum=c0bd8f296e18cf074969f6401b9ecb72609a1323818ec2b9bf7a8f8d740d1363

cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
(cd "$folder" && npm pack --silent "quickjs-wasi@$version" >/dev/null && tar xzf ./*.tgz)
found=$(sha256sum "$folder/package/quickjs.wasm" | cut -d ' ' -f 1)
if [ "$found" != "$sum" ]; then
	echo "quickjs.wasm of quickjs-wasi $version has the SHA-256 $found, and $sum is expected" >&2
	exit 1
fi
cp "$folder/package/quickjs.wasm" internal/sandbox/javascript/quickjs.wasm
