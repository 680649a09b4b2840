#!/usr/bin/env bash
# Prints the packages of the root module whose tests use SQLite, one per line. With the race detector, SQLite (in Go) takes up to thirty
# times as long: `make test` runs them without it, `make race` with it.
set -euo pipefail
cd "$(dirname "$0")/.."

GOWORK=off go list -test -f '{{if .ForTest}}{{$test := .ForTest}}{{range .Deps}}{{if eq . "modernc.org/sqlite"}}{{$test}}{{"\n"}}{{end}}{{end}}{{end}}' ./... |
	sort -u
