package hygiene

import (
	"fmt"
	"slices"
	"strings"
)

// Module is the import path of the root module.
const Module = "github.com/signalbox-dev/signalbox"

// Rule says what the packages of one subtree may import of ours. A package follows the rule with the longest From.
type Rule struct {
	From  string   // a package of the root module and everything below it
	Allow []string // subtrees of the root module; a rule's own subtree is always allowed
	Why   string
}

// Ban says what the packages of one subtree must not link, neither directly nor through others.
type Ban struct {
	From   string   // a package of the root module and everything below it; empty for the whole module
	Links  []string // import paths; one that ends with /... means everything below as well, as for the go tool
	Except []string // subtrees of the root module that may
	Why    string
}

// Arrows is the architecture: cmd → app → {rpc, engine, store, webui, telemetry} → domain → their own interfaces.
// A package that no rule covers is a finding, so a new one is placed here before anything imports it.
func Arrows() []Rule {
	language := []string{"dsl", "dsl/jq"}
	domain := []string{"internal/run", "internal/batch", "internal/retention", "internal/cutover", "internal/event", "internal/dispatcher", "internal/workflow", "internal/worker", "internal/project", "internal/audit", "internal/auth", "internal/fault", "internal/secret", "internal/system", "internal/token", "internal/quota", "internal/redact"}
	ambient := []string{"internal/logger", "internal/config", "internal/lru", "internal/notice", "internal/pause", "internal/routine"}
	rules := []Rule{
		{"api", nil, "the contract with the outside knows nothing of the inside"},
		{"dsl/internal", nil, "values and trees know nothing of the language"},
		{"dsl/jq", []string{"dsl/internal"}, "expressions know nothing of documents"},
		{"dsl", []string{"dsl/internal", "dsl/jq"}, "the language knows nothing of how it is run"},
		{"dsl/interp", slices.Concat(language, []string{"dsl/internal"}), "the interpreter is pure; its driver is in the engine"},
		{"conn", nil, "the connection knows nothing of what travels on it"},
		{"conn/conntest", nil, "a stand-in for Temporal knows nothing of who is tested with it"},
		{"lease", nil, "ownership knows nothing of what is owned"},
		{"dispatch/inbox", nil, "where events wait knows nothing of who takes them"},
		{"dispatch", []string{"lease", "dispatch/inbox"}, "a dispatcher knows its lease and its inbox"},
		{"internal/fault", nil, "what a domain answers when it refuses"},
		{"internal/logger", nil, "carried by the context everywhere"},
		{"internal/freeport", nil, "ports of this machine, for whoever starts servers"},
		{"internal/lru", nil, "a cache of any values"},
		{"internal/notice", nil, "names are all that it knows"},
		{"internal/pause", nil, "waits, and knows nothing of what for"},
		{"internal/routine", nil, "starts and stops a loop, whatever it does"},
		{"internal/config", []string{"internal/logger", "internal/redact"}, "settings know nothing of what they set"},
		{"internal/config/redisconfig", slices.Concat(ambient, []string{"lease/redislease"}), "settings of Redis, as the store of leases takes them"},
		{"internal/config/sealconfig", slices.Concat(ambient, []string{"internal/seal"}), "the keys that settings name"},
		{"internal/run/vault", slices.Concat(domain, ambient, language, []string{"dispatch/inbox", "internal/seal"}), "what runs hold and do not show"},
		{"internal/seal", nil, "keys know nothing of what they seal"},
		{"internal/telemetry", slices.Concat(ambient, []string{"internal/system"}), "metrics know nothing of what they measure, but what the platform tells of itself"},
		{"internal/health", ambient, "asks through interfaces of its own"},
		{"internal/memory", []string{"internal/fault"}, "measures the process it is in"},
		{"internal/store", slices.Concat(domain, ambient, []string{"dispatch/inbox", "internal/run/vault"}), "the database side of the domain's interfaces"},
		{"internal/engine", slices.Concat(domain, ambient, language, []string{"conn", "dispatch/inbox", "dsl/interp", "internal/seal"}), "the Temporal side of the domain's interfaces"},
		{"internal/rpc", slices.Concat(domain, ambient, language, []string{"api", "dispatch/inbox", "internal/rpc/jsoncodec"}), "the API side of the domain"},
		{"internal/rpc/jsoncodec", []string{"api"}, "the exact JSON of the API, for its server and its clients"},
		{"internal/cli", []string{"api", "dsl", "internal/config", "internal/rpc/jsoncodec"}, "a client of the API like any other"},
		{"internal/app", slices.Concat(domain, ambient, language, []string{"conn", "dispatch", "dispatch/inbox", "dsl/interp", "lease", "internal/config/redisconfig", "internal/config/sealconfig", "internal/engine", "internal/health", "internal/memory",
			"internal/rpc", "internal/run/vault", "internal/seal", "internal/store", "internal/telemetry"}), "composes one process"},
		{"internal/app/command", slices.Concat(ambient, []string{"internal/auth", "internal/fault", "internal/token", "internal/app", "internal/memory", "internal/config/redisconfig", "internal/config/sealconfig", "internal/cli", "internal/store", "lease/redislease"}), "the commands that are a process of their own"},
		{"internal/stopwatch", nil, "measures tests, whatever they test"},
		{"internal/hygiene", nil, "reads sources, imports none"},
		{"cmd", slices.Concat(ambient, []string{"internal/app/command", "internal/cli"}), "a few lines"},
		{"examples", language, "documents, and the test that reads them"},
		{"examples/conn", []string{"conn"}, "somebody else's program, which has the library alone"},
		{"examples/dispatch", []string{"conn", "dispatch", "dispatch/inbox", "lease"}, "somebody else's program, which has the libraries alone"},
	}
	for _, noun := range domain {
		rules = append(rules, Rule{noun, slices.Concat(domain, ambient, language, []string{"dispatch/inbox"}), "a domain noun owns the interfaces it needs"})
	}
	return rules
}

// Bans is what must stay unlinked: P-A1, P-A2, P-A3 of the design.
func Bans() []Ban {
	const temporal = "go.temporal.io/..."
	platform := []string{"database/sql", "modernc.org/sqlite/...", "github.com/jackc/pgx/...", "connectrpc.com/...", "github.com/spf13/cobra"}
	bans := []Ban{
		{"", []string{"go.temporal.io/server/..."}, nil, "only the devserver module embeds a Temporal server"},
		{"dsl", append([]string{temporal}, platform...), nil, "the language is a library without an engine, a database or a server"},
		{"internal/cli", append([]string{Module + "/internal/store/...", Module + "/internal/engine/...", Module + "/internal/run/..."}, platform[:3]...),
			nil, "the command line talks to the API only"},
		{"conn", append([]string{"go.temporal.io/server/..."}, platform...), nil, "the connection is a library on the Temporal SDK and gRPC alone"},
		{"examples/conn", append([]string{"go.temporal.io/server/...", Module + "/internal/...", Module + "/dsl/..."}, platform...), nil,
			"whoever takes the library links nothing of the platform"},
		{"examples/dispatch", append([]string{"go.temporal.io/server/...", Module + "/internal/...", Module + "/dsl/..."}, platform...), nil,
			"whoever takes the libraries links nothing of the platform"},
		{"lease", append([]string{temporal}, platform...), nil, "leases are a library without an engine"},
		{"lease", []string{"github.com/redis/..."}, []string{"lease/redislease"}, "who keeps leases elsewhere links no Redis"},
		{"dispatch", []string{"github.com/redis/..."}, nil, "whose leases they are is decided by who runs the dispatchers"},
		{"dispatch", append([]string{"go.temporal.io/server/..."}, platform...), nil, "dispatchers are a library on the Temporal SDK alone"},
		{"internal/store", []string{temporal, "connectrpc.com/..."}, nil, "rows know nothing of Temporal or of the API"},
		{"internal/rpc", []string{temporal, "database/sql"}, nil, "the API knows the domain's interfaces, not what is behind them"},
	}
	for _, noun := range []string{"run", "batch", "retention", "cutover", "event", "dispatcher", "workflow", "worker", "project", "audit", "auth", "fault", "system", "token", "quota"} {
		bans = append(bans, Ban{"internal/" + noun, append([]string{temporal}, platform...), nil, "the domain decides; it does no I/O"})
	}
	return bans
}

// Imports is the import graph of a program: what each package imports, by import path.
type Imports map[string][]string

// Direction finds imports between our own packages that no rule allows, and packages without a rule.
func Direction(graph Imports, rules []Rule) []Finding {
	var findings []Finding
	for _, pkg := range ours(graph) {
		rule, ok := ruleOf(pkg, rules)
		if !ok {
			findings = append(findings, Finding{pkg, "has no rule; say in Arrows what it may import"})
			continue
		}
		for _, imported := range graph[Module+"/"+pkg] {
			inside, isOurs := within(imported)
			if !isOurs || sameRule(inside, rule, rules) {
				continue
			}
			if !slices.ContainsFunc(rule.Allow, func(a string) bool { return allowedBy(inside, a, rules) }) {
				findings = append(findings, Finding{pkg, fmt.Sprintf("must not import %s: %s", inside, rule.Why)})
			}
		}
	}
	return findings
}

// sameRule tells whether a package follows the given rule itself.
func sameRule(pkg string, rule Rule, rules []Rule) bool {
	own, ok := ruleOf(pkg, rules)
	return ok && own.From == rule.From
}

// allowedBy tells whether allowing one subtree reaches a package: a subtree with a rule of its own is named by itself.
func allowedBy(pkg, allow string, rules []Rule) bool {
	rule, ok := ruleOf(pkg, rules)
	return below(pkg, allow) && ok && below(allow, rule.From)
}

// Linked finds packages that link, through whatever path, what they must not.
func Linked(graph Imports, bans []Ban) []Finding {
	var findings []Finding
	for _, pkg := range ours(graph) {
		for _, ban := range bans {
			exempt := slices.ContainsFunc(ban.Except, func(e string) bool { return below(pkg, e) })
			if !below(pkg, ban.From) || exempt {
				continue
			}
			if path := pathTo(graph, pkg, ban.Links); path != nil {
				findings = append(findings, Finding{pkg, fmt.Sprintf("links %s: %s", strings.Join(path, " → "), ban.Why)})
			}
		}
	}
	return findings
}

// pathTo is the shortest chain of imports from a package of ours to any of the patterns.
func pathTo(graph Imports, from string, patterns []string) []string {
	start := Module + "/" + from
	before := map[string]string{start: ""}
	for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
		pkg := queue[0]
		if pkg != start && slices.ContainsFunc(patterns, func(p string) bool { return matches(pkg, p) }) {
			var chain []string
			for ; pkg != start; pkg = before[pkg] {
				chain = append(chain, pkg)
			}
			slices.Reverse(chain)
			return chain
		}
		for _, next := range graph[pkg] {
			if _, seen := before[next]; !seen {
				before[next] = pkg
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// ours lists the packages of the root module in a graph, relative to it, in order.
func ours(graph Imports) []string {
	var packages []string
	for pkg := range graph {
		if rest, ok := strings.CutPrefix(pkg, Module+"/"); ok {
			packages = append(packages, rest)
		}
	}
	slices.Sort(packages)
	return packages
}

func within(pkg string) (string, bool) { return strings.CutPrefix(pkg, Module+"/") }

func matches(pkg, pattern string) bool {
	tree, ok := strings.CutSuffix(pattern, "/...")
	return pkg == tree || ok && below(pkg, tree)
}

// below tells whether a package is a subtree's root or inside it. Everything is below the empty path.
func below(pkg, tree string) bool {
	return tree == "" || pkg == tree || strings.HasPrefix(pkg, tree+"/")
}

func ruleOf(pkg string, rules []Rule) (Rule, bool) {
	var best Rule
	found := false
	for _, rule := range rules {
		if below(pkg, rule.From) && (!found || len(rule.From) > len(best.From)) {
			best, found = rule, true
		}
	}
	return best, found
}
