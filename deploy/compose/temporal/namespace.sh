#!/bin/sh
# Creates the namespace in which the runs are executed, unless it exists.
set -eu
temporal operator namespace describe --namespace default >/dev/null 2>&1 && exit 0
temporal operator namespace create --namespace default --retention "$TEMPORAL_RETENTION"
