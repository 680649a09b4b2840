#!/bin/sh
# The entry point of temporalio/server.
set -eu
if [ "$BIND_ON_IP" = 0.0.0.0 ]; then
	TEMPORAL_BROADCAST_ADDRESS=$(getent hosts "$(hostname)" | awk '{print $1;}')
	export TEMPORAL_BROADCAST_ADDRESS
fi
exec temporal-server start
