#!/usr/bin/env bash
# Prints the folder of a Node.js that builds the web UI, to be put first on the PATH; an empty line if the one on the PATH is right.
# As root on Debian it installs one into .build/node if there is none; elsewhere it stops with a clear message.
set -euo pipefail
cd "$(dirname "$0")/.."

pinned=22.23.3
folder=${PWD}/.build/node
hint="The web UI needs Node.js 20.19 or newer (of version 22: 22.12 or newer) with npm. Get it from https://nodejs.org/ and put it on the PATH."

# is_right NODE reports whether a Node.js is new enough.
is_right() {
	"$1" -e '
		const [major, minor] = process.versions.node.split(".").map(Number);
		const right = major === 20 ? minor >= 19 : major === 22 ? minor >= 12 : major > 22;
		process.exit(right ? 0 : 1)' 2>/dev/null
}

if command -v node >/dev/null && command -v npm >/dev/null && is_right node; then
	echo
	exit
fi
if [ -x "${folder}/node_modules/.bin/node" ] && command -v npm >/dev/null && is_right "${folder}/node_modules/.bin/node"; then
	echo "${folder}/node_modules/.bin"
	exit
fi

have="Node.js is not installed."
if command -v node >/dev/null; then
	have="Node.js $(node --version 2>/dev/null || echo "of unknown version") is on the PATH$(command -v npm >/dev/null || echo ", npm is not")."
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "signalbox: ${have} ${hint}" >&2
	exit 1
fi

if ! command -v npm >/dev/null; then
	echo "Installing npm from the system's packages." >&2
	export DEBIAN_FRONTEND=noninteractive
	if ! { apt-get update -qq && apt-get install -qq -y --no-install-recommends npm; } >/dev/null; then
		echo "signalbox: apt-get could not install npm; see its message above. ${hint}" >&2
		exit 1
	fi
fi
if is_right node; then
	echo
	exit
fi
echo "Installing Node.js ${pinned} into .build/node with npm." >&2
mkdir -p "${folder}"
if ! npm install --prefix "${folder}" --no-audit --no-fund --no-save --silent "node@${pinned}" >&2 || ! is_right "${folder}/node_modules/.bin/node"; then
	echo "signalbox: npm could not install Node.js ${pinned} (registry $(npm config get registry)); check the network. ${hint}" >&2
	exit 1
fi
echo "${folder}/node_modules/.bin"
