#!/usr/bin/env bash
# Prints the packages of the root module that the race detector checks, one per line: with "quick" those of `make test`, with "rest" those
# of `make race`.
#
# Packages that use package sync are checked, and packages whose tests use SQLite, as the layers above the store do. Their dependencies are
# compiled once more with the detector, which takes four minutes for the Temporal SDK and all that the server links; and SQLite (in Go) takes up to
# thirty times as long. So the quick ones are those whose tests link neither.
set -euo pipefail
cd "$(dirname "$0")/.."

# These compute a lot with the detector, and what uses their stores is checked by the packages above them.
never='/signalbox/(dsl(/.*)?|dispatch/internal/model|internal/store|internal/store/schema|internal/migrate/internal/legacy|internal/run/reconcile)$'

# Which packages have tests that link the two, one "dependency package" per line.
linking=$(GOWORK=off go list -test -f '{{if .ForTest}}{{$test := .ForTest}}{{range .Deps}}{{if or (eq . "modernc.org/sqlite") (eq . "go.temporal.io/sdk/internal")}}{{.}} {{$test}}{{"\n"}}{{end}}{{end}}{{end}}' ./... | sort -u)
sqlite=$(sed -n 's,^modernc.org/sqlite ,,p' <<<"${linking}")
sdk=$(sed -n 's,^go.temporal.io/sdk/internal ,,p' <<<"${linking}")
concurrent=$(GOWORK=off go list -f '{{$package := .ImportPath}}{{if or .TestGoFiles .XTestGoFiles}}{{range .Imports}}{{if or (eq . "sync") (eq . "sync/atomic") (eq . "golang.org/x/sync/errgroup")}}{{$package}}{{"\n"}}{{end}}{{end}}{{end}}' ./... | sort -u)
case "${1:-}" in
quick) grep -vxF -e "${sqlite}" -e "${sdk}" <<<"${concurrent}" ;;
rest) sort -u - <<<"${sqlite}"$'\n'"$(grep -xF "${sdk}" <<<"${concurrent}")" ;;
*)
	echo "usage: race-packages.sh quick | rest" >&2
	exit 2
	;;
esac | grep -vE "${never}"
