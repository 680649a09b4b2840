#!/bin/sh
# Publishes the workflows of a folder; with --check it only validates and tests them, without a server.
#
#   examples/ci/publish.sh [--check] FOLDER
#
# SIGNALBOX_ADDRESS and SIGNALBOX_TOKEN name the server and a token with the role publisher, SIGNALBOX_PROJECT the project.
# A file whose content is published already changes nothing, so the script may run at each commit. It ends at the first file that is
# refused: a changed file needs a new document.version (exit code 8).
set -eu

check=no
if [ "${1-}" = --check ]; then check=yes; shift; fi
folder=${1:?"usage: publish.sh [--check] FOLDER"}

signalbox workflow validate --strict "$folder"
if [ -n "$(find "$folder" -name '*.test.yaml')" ]; then signalbox workflow test "$folder"; fi
if [ "$check" = yes ]; then exit 0; fi

# A workflow that others run is published before them if its file sorts before theirs.
find "$folder" -name '*.yaml' ! -name '*.test.yaml' | sort | while read -r file; do
  signalbox workflow publish --strict "$file"
done
