# Signalbox: every step that continuous integration takes is a target a person can run. `make help` lists them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

TOOLS := $(CURDIR)/.build/bin
LDFLAGS := -s -w
# Each module is built by its own go.mod, as its users build it; the workspace is for editors. All builds of the Temporal
# server use the same flags: each other set of flags would take minutes more.
GO := GOWORK=off CGO_ENABLED=0 GOFLAGS=-trimpath go
PAGES := $(GO) run ./promise/page -processors "$$(nproc)" -tests . -figures promise/figures.jsonl \
	-reliability ../docs/reliability.md -alerts ../docs/alerting.md
BUILD := $(GO) build -ldflags '$(LDFLAGS)'
TOOL_BUILD := GOWORK=off GOFLAGS=-buildvcs=false go build

# The packages that decide: their own tests should notice at least 80 % of the changes that `make mutate` makes.
DECIDING := ./internal/netguard ./internal/webhook ./internal/problem ./internal/batch ./internal/sealed

PROTO_TOOLS := $(addprefix $(TOOLS)/,buf protoimports protoc-gen-go protoc-gen-connect-go)

##@ Start here

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: dev
dev: build ## Build, start everything in one process, publish the examples, run hello, stay up until Ctrl-C
	@echo "Starting signalbox dev: embedded Temporal, SQLite, API and worker in one process. Ctrl-C stops it."
	@exec bin/signalbox dev --publish examples/workflows --run hello

##@ Build

.PHONY: build
build: modules ui ## Build the web UI, bin/signalbox (with an embedded Temporal) and bin/signalbox-server (lean, for images)
	@echo "Building bin/signalbox-server and bin/signalbox; the first build compiles the Temporal server and takes minutes."
	@mkdir -p bin
	@$(BUILD) -o bin/signalbox-server ./cmd/signalbox
	@cd devserver && $(BUILD) -o ../bin/signalbox ./cmd/signalbox

.PHONY: image
image: build ## Pack bin/signalbox-server into the image signalbox:local, without pulling a base image
	@scripts/image.sh signalbox:local

.PHONY: ui
ui: ## Build the web UI into internal/webui/dist, which the binaries embed (Node.js 20.19 or newer)
	@scripts/ui.sh build

.PHONY: modules
modules:
	@scripts/require-go.sh
	@scripts/require-modules.sh . devserver test

.PHONY: generate
generate: $(PROTO_TOOLS) $(TOOLS)/dashboards ui/node_modules ## Generate the API for Go and the web UI, its OpenAPI document, the dashboards and the reference pages
	@$(TOOLS)/protoimports .build/proto
	@$(TOOLS)/buf generate
	@$(TOOLS)/buf generate --template ui/buf.gen.yaml
	@$(TOOLS)/buf build api -o .build/api.binpb
	@$(GO) run ./internal/generate openapi .build/api.binpb api/openapi.base.yaml api/openapi.yaml
	@$(TOOLS)/dashboards deploy/grafana/dashboards
	@$(GO) generate ./...
	@cd devserver && $(GO) generate ./...

# npm installs exactly what the lock file names.
ui/node_modules: ui/package-lock.json
	@echo "Installing the web UI's packages into ui/node_modules"; cd ui && npm ci --no-audit --no-fund --loglevel=error && touch node_modules

.PHONY: clean
clean: ## Remove what was built here: bin, .build, the web UI and its packages
	@rm -rf bin .build ui/node_modules
	@find internal/webui/dist -mindepth 1 -not -name .keep -delete

##@ Check

.PHONY: test
test: setup build $(TOOLS)/testreport ## Set up Postgres and Redis, build, run every test of every module and of the web UI
	@SIGNALBOX_BIN="$(CURDIR)/bin/signalbox" SIGNALBOX_SERVER_BIN="$(CURDIR)/bin/signalbox-server" \
		SIGNALBOX_PREVIOUS_BIN="$$(scripts/previous.sh)" \
		TESTREPORT="$(TOOLS)/testreport" scripts/services.sh with scripts/test.sh

.PHONY: e2e
e2e: setup build ## Test the web UI in Chromium against the real platform, all tests
	@SIGNALBOX_BIN="$(CURDIR)/bin/signalbox" SIGNALBOX_SERVER_BIN="$(CURDIR)/bin/signalbox-server" scripts/services.sh with scripts/ui.sh e2e

.PHONY: screenshots
screenshots: setup build ## Take the pictures of every page in both themes into docs/images/studio
	@SIGNALBOX_BIN="$(CURDIR)/bin/signalbox" SIGNALBOX_SERVER_BIN="$(CURDIR)/bin/signalbox-server" scripts/services.sh with scripts/ui.sh shots

.PHONY: setup
setup: ## Install what the tests need from Debian's packages (as root), or say what to install
	@scripts/require-go.sh
	@scripts/services.sh install

.PHONY: verify
verify: lint ui/node_modules $(TOOLS)/dashboards ## Check that generated code is fresh and everything passes the linters
	@scripts/verify-generated.sh "$(TOOLS)"
	@echo "verify: all fresh, no findings"

.PHONY: lint
lint: $(PROTO_TOOLS) $(TOOLS)/golangci-lint ## Check formatting, protos and Go code
	@test -z "$$(git ls-files -z --cached --others --exclude-standard '*.go' | xargs -0 gofmt -l | tee /dev/stderr)" || \
		{ echo "lint: the files above are not formatted; run gofmt -w on them" >&2; exit 1; }
	@$(TOOLS)/protoimports .build/proto
	@$(TOOLS)/buf lint
	@status=0; for module in $$(scripts/modules.sh) tools; do \
		echo "golangci-lint: $$module"; \
		(cd $$module && GOWORK=off CGO_ENABLED=0 GOFLAGS=-trimpath $(TOOLS)/golangci-lint run ./...) || status=1; done; \
		exit $$status

.PHONY: conformance
conformance: build ## Run the specification's conformance kit (OWS_DIR: its folder) and our scenarios on the platform, on Linux; write docs/conformance.md
	@cd test && SIGNALBOX_BIN="$(CURDIR)/bin/signalbox" SIGNALBOX_SERVER_BIN="$(CURDIR)/bin/signalbox-server" \
		SIGNALBOX_CONFORMANCE_PAGE=1 $(GO) test -trimpath -count=1 -v -timeout 30m ./conformance

.PHONY: bench
bench: setup build ## Measure beside the bare Temporal SDK (ONLY=section: that one); write docs/benchmarks.md and the README's table; takes minutes
	@cd test && SIGNALBOX_BIN="$(CURDIR)/bin/signalbox" SIGNALBOX_SERVER_BIN="$(CURDIR)/bin/signalbox-server" \
		../scripts/services.sh with env $(GO) run ./bench $(if $(ONLY),-only '$(ONLY)') -out ../docs/benchmarks.md -readme ../README.md

.PHONY: chaos
chaos: setup build ## Inject random faults and restore older backups for CHAOS_MINUTES (30), from SEED if given; the seed is printed
	@cd test && SIGNALBOX_BIN="$(CURDIR)/bin/signalbox" SIGNALBOX_SERVER_BIN="$(CURDIR)/bin/signalbox-server" \
		SIGNALBOX_CHAOS_MINUTES="$(or $(CHAOS_MINUTES),30)" SIGNALBOX_CHAOS_SEED="$(SEED)" \
		../scripts/services.sh with env $(GO) test ./chaos -trimpath -count=1 -v -timeout 24h
	@SIGNALBOX_CHAOS_MINUTES="$(or $(CHAOS_MINUTES),30)" SIGNALBOX_CHAOS_SEED="$(SEED)" \
		$(GO) test ./dsl/interp -run '^TestSimulatedListening$$' -count=1 -v -timeout 24h

.PHONY: soak
soak: setup build ## Run a mix of everything for SOAK_MINUTES (60): nothing late, stuck, lost or doubled, flat memory
	@cd test && SIGNALBOX_BIN="$(CURDIR)/bin/signalbox" SIGNALBOX_SERVER_BIN="$(CURDIR)/bin/signalbox-server" \
		SIGNALBOX_SOAK_MINUTES="$(or $(SOAK_MINUTES),60)" \
		../scripts/services.sh with env $(GO) test ./soak -trimpath -count=1 -v -timeout 24h

.PHONY: restarts
restarts: ## Restart and kill processes 500 times under load, from SEED if given, and add the figures to docs/reliability.md
	@SIGNALBOX_CHAOS_SEED="$(SEED)" $(MAKE) prove RUN='^TestRestartsUnderLoad$$'

.PHONY: compose-test
compose-test: build ## Run deploy/compose in containers, from images built here (as root on Debian, with docker.io, docker-compose, debootstrap)
	@SIGNALBOX_BIN="$(CURDIR)/bin/signalbox" SIGNALBOX_SERVER_BIN="$(CURDIR)/bin/signalbox-server" scripts/compose-test.sh

# The suites of the store and of the reconciler would take hours: what they run is run by the others, too.
.PHONY: race
race: setup ## Run the tests that link the Temporal SDK or SQLite with the race detector, which make test leaves to this; takes 15 minutes
	@scripts/services.sh with env GOWORK=off CGO_ENABLED=1 GOFLAGS=-trimpath go test -race -count=1 -timeout 1h $$(scripts/race-packages.sh rest)

.PHONY: steady
steady: setup build $(TOOLS)/testreport ## Run the suites (SUITES=packages: some) STEADY_RUNS (5) times with a quarter, half and two processors, as root; list what failed; takes a day
	@SIGNALBOX_BIN="$(CURDIR)/bin/signalbox" SIGNALBOX_SERVER_BIN="$(CURDIR)/bin/signalbox-server" \
		SIGNALBOX_PREVIOUS_BIN="$$(scripts/previous.sh)" SUITES="$(SUITES)" STEADY_RUNS="$(STEADY_RUNS)" STEADY_SHARES="$(STEADY_SHARES)" \
		TESTREPORT="$(TOOLS)/testreport" scripts/services.sh with scripts/steady.sh

.PHONY: mutate
mutate: $(TOOLS)/gremlins ## Change the code of packages (PKG="./internal/webhook …") and list the changes that their own tests do not notice
	@scripts/mutate.sh $(TOOLS)/gremlins $(or $(PKG),$(DECIDING))

.PHONY: fuzz
fuzz: setup ## Fuzz every target for FUZZ_TIME (10m) in all; failing inputs are stored in testdata/fuzz
	@scripts/fuzz.sh "$(or $(FUZZ_TIME),10m)"

# One package and one test at a time: the figures are for a machine without other load.
.PHONY: prove
prove: setup build ## Run every promise (RUN=regexp: some, keeping the figures of others) at full length and write docs/reliability.md; takes hours
	@mkdir -p .build && rm -f .build/promises.jsonl && touch .build/promises.jsonl
	@status=0; (cd test && SIGNALBOX_BIN="$(CURDIR)/bin/signalbox" SIGNALBOX_SERVER_BIN="$(CURDIR)/bin/signalbox-server" \
		SIGNALBOX_PROVE=1 SIGNALBOX_PROMISES="$(CURDIR)/.build/promises.jsonl" SIGNALBOX_CHAOS_MINUTES="$(or $(CHAOS_MINUTES),30)" SIGNALBOX_SOAK_MINUTES="$(or $(SOAK_MINUTES),60)" \
		../scripts/services.sh with env $(GO) test -trimpath -count=1 -p=1 -parallel=1 -timeout 24h $(if $(RUN),-run '$(RUN)') ./connection ./outage ./dispatch ./integration ./language ./bounded ./attack ./chaos ./soak) || status=$$?; \
		(cd test && $(PAGES) ../.build/promises.jsonl) || status=$$?; \
		exit $$status
	@$(if $(RUN),,$(MAKE) throttled)
	@$(if $(RUN),,$(MAKE) race)
	@$(if $(RUN),,scripts/fuzz.sh "$(or $(FUZZ_TIME),1h)")
	@$(if $(RUN),,$(MAKE) alerts)
	@$(if $(RUN),,$(MAKE) steady)

# Each server has a control group of its own, as in a container. The suites end without a test, and with the reason, where none can be made.
.PHONY: throttled
throttled: setup build ## Run the language, integration and bounded suites with servers that get a quarter and half of a processor (PROCESSORS=n: n), as root on Linux
	@cd test && for processors in $(or $(PROCESSORS),0.25 0.5); do \
		echo "Servers get $$processors of a processor."; \
		SIGNALBOX_PROCESSORS=$$processors SIGNALBOX_BIN="$(CURDIR)/bin/signalbox" SIGNALBOX_SERVER_BIN="$(CURDIR)/bin/signalbox-server" \
			../scripts/services.sh with env $(GO) test -trimpath -count=1 -p=1 -timeout 2h ./language ./integration ./bounded || exit 1; done

# Most of the time is spent waiting for the windows of rules, so several platforms run at once.
.PHONY: alerts
alerts: setup build ## Plant every fault (RUN=regexp: those with such a name or alert) under Prometheus with the durations of production and write docs/alerting.md; takes two hours
	@mkdir -p .build && rm -f .build/alerts.jsonl && touch .build/alerts.jsonl
	@status=0; (cd test && SIGNALBOX_BIN="$(CURDIR)/bin/signalbox" SIGNALBOX_SERVER_BIN="$(CURDIR)/bin/signalbox-server" \
		SIGNALBOX_PROVE=1 SIGNALBOX_PROMISES="$(CURDIR)/.build/alerts.jsonl" ../scripts/services.sh with \
		env $(GO) test -trimpath -count=1 -parallel=8 -timeout 24h -run 'TestAlertsArriveAndAreResolved/($(RUN))' ./operations) || status=$$?; \
		(cd test && $(PAGES) ../.build/alerts.jsonl) || status=$$?; \
		exit $$status

##@ Tools

.PHONY: tools
tools: $(PROTO_TOOLS) $(TOOLS)/golangci-lint $(TOOLS)/testreport $(TOOLS)/dashboards ## Build the pinned tools into .build/bin

# A change of the file that pins a tool's version rebuilds the tool.
$(TOOLS)/buf: tools/go.mod
	@echo "Building $(@F)"; cd tools && $(TOOL_BUILD) -o $@ github.com/bufbuild/buf/cmd/buf

$(TOOLS)/gremlins: tools/go.mod
	@echo "Building $(@F)"; cd tools && $(TOOL_BUILD) -o $@ github.com/go-gremlins/gremlins/cmd/gremlins

$(TOOLS)/protoimports: tools/go.mod $(wildcard tools/protoimports/*.go)
	@echo "Building $(@F)"; cd tools && $(TOOL_BUILD) -o $@ ./protoimports

$(TOOLS)/dashboards: tools/go.mod $(wildcard tools/dashboards/*.go)
	@cd tools && $(TOOL_BUILD) -o $@ ./dashboards

$(TOOLS)/testreport: $(wildcard tools/testreport/*.go)
	@cd tools && $(TOOL_BUILD) -o $@ ./testreport

# These two come from the root module, so that generated code always fits the libraries it is compiled with.
$(TOOLS)/protoc-gen-go: go.mod
	@echo "Building $(@F)"; $(TOOL_BUILD) -o $@ google.golang.org/protobuf/cmd/protoc-gen-go

$(TOOLS)/protoc-gen-connect-go: go.mod
	@echo "Building $(@F)"; $(TOOL_BUILD) -o $@ connectrpc.com/connect/cmd/protoc-gen-connect-go

$(TOOLS)/golangci-lint: tools/lint/go.mod
	@echo "Building $(@F)"; cd tools/lint && $(TOOL_BUILD) -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
