#!/usr/bin/env bash
# Prints the folder of each module of the workspace, one per line.
set -euo pipefail
cd "$(dirname "$0")/.."
awk '/^use \(/ {inside = 1; next} /^\)/ {inside = 0} inside && NF {print $1} /^use [^(]/ {print $2}' go.work
