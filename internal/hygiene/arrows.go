package hygiene

import (
	"fmt"
	"slices"
	"strings"
)

// Module is the import path of the root module.
const Module = "github.com/signalbox-dev/signalbox"

// Rule lists which packages of ours the packages of one subtree may import. A package follows the rule with the longest
// From.
type Rule struct {
	From  string   // a package of the root module and everything below it
	Allow []string // subtrees of the root module; a rule's own subtree is always allowed
	Why   string
}

// Ban lists what the packages of one subtree must not link, directly or indirectly.
type Ban struct {
	From string // a package of the root module and everything below it; empty for the whole module
	// import paths; one that ends with /... includes everything below, as for the go tool, and !path excludes one
	Links  []string
	Except []string // subtrees of the root module without the ban
	Why    string
}

// Arrows returns the allowed imports: cmd → app → {rpc, engine, store, webui, telemetry} → domain → their own
// interfaces. A package without a rule is a violation, so a new package needs a rule here first.
func Arrows() []Rule {
	language := []string{"dsl", "dsl/firing", "dsl/jq"}
	domain := []string{"internal/run", "internal/server", "internal/sealingkey", "internal/annotation", "internal/batch",
		"internal/problem", "internal/retention", "internal/event", "internal/dispatcher", "internal/workflow", "internal/function",
		"internal/worker", "internal/project", "internal/audit", "internal/auth", "internal/apperror", "internal/secret",
		"internal/system", "internal/maintenance", "internal/token", "internal/session", "internal/view", "internal/webhook",
		"internal/netguard", "internal/quota", "internal/redact", "internal/search", "internal/sandbox/limit"}
	ambient := []string{"internal/logger", "internal/secretfile", "internal/config", "internal/pubsub", "internal/loop",
		"internal/backoff", "internal/groupcommit", "internal/semaphore", "internal/traceparent", "internal/processor"}
	waiting := []string{"internal/loop", "internal/backoff"} // the standard library only, so the libraries may link them
	plain := []string{"conn/conntype", "dispatch/dispatchtype", "dispatch/inbox"}
	rules := []Rule{
		{"api", nil, "the API definition does not depend on its implementation"},
		{"dsl/internal", nil, "values and syntax trees do not depend on the workflow language"},
		{"dsl/firing", []string{"dsl/internal"}, "the times of schedules do not depend on workflow documents"},
		{"dsl/jq", []string{"dsl/internal"}, "expressions do not depend on workflow documents"},
		{"dsl", []string{"dsl/internal", "dsl/jq"}, "the workflow language does not depend on its execution"},
		{"dsl/interp", slices.Concat(language, []string{"dsl/internal"}),
			"the interpreter has no side effects; the engine executes its decisions"},
		{"dsl/httpmessage", append(slices.Concat(language, []string{"internal/apperror"}), waiting...),
			"messages of calls do not depend on what sends them"},
		{"dsl/workflowtest", slices.Concat(language, []string{"dsl/internal", "dsl/httpmessage", "dsl/interp",
			"internal/sandbox/javascript", "internal/sandbox/output"}),
			"tests of documents need the language and its interpreter only"},
		{"dsl/languageservice", slices.Concat(language, []string{"dsl/workflowtest"}),
			"answers to editors need the language only"},
		{"conn/conntype", nil, "plain types depend on no other package"},
		{"conn", append([]string{"conn/conntype"}, waiting...), "the connection does not depend on the calls that use it"},
		{"function", []string{"conn", "dsl", "internal/engine/codec", "internal/engine/contract", "internal/engine/flow",
			"internal/engine/heartbeat", "internal/keyring"},
			"functions of programs need the language, the connection, and the messages of the engine"},
		{"conn/conntest", waiting, "the simulated Temporal server does not depend on the code under test"},
		{"lease", waiting, "leases do not depend on what they protect"},
		{"dispatch/inbox", nil, "the event inbox does not depend on the dispatchers that read it"},
		{"dispatch/dispatchtype", []string{"lease", "dispatch/inbox"},
			"plain types do not depend on the dispatchers that they describe"},
		{"dispatch", append([]string{"lease", "dispatch/inbox", "dispatch/dispatchtype"}, waiting...),
			"a dispatcher needs only its lease and its inbox"},
		{"internal/apperror", nil, "the error type of the domain depends on no other package"},
		{"internal/logger", []string{"internal/terminal"},
			"every package may log, so the logger depends only on the escaping of its lines"},
		{"internal/freeport", nil, "a free port does not depend on the server that uses it"},
		{"internal/pubsub", nil, "notifications carry only names"},
		{"internal/loop", nil, "loops do not depend on the work that they run"},
		{"internal/backoff", nil, "delays do not depend on what is repeated"},
		{"internal/secretfile", nil, "the access to a file does not depend on what it holds"},
		{"internal/notice", nil, "the licences of others do not depend on where they are shown"},
		{"internal/terminal", nil, "escaping does not depend on where the text comes from"},
		{"internal/traceparent", nil, "the text of a span does not depend on the work that continues it"},
		{"internal/groupcommit", nil, "shared transactions do not depend on what is committed"},
		{"internal/semaphore", nil, "semaphores do not depend on the work that they bound"},
		{"internal/sandbox/output", nil, "what a program prints does not depend on where it is executed"},
		{"internal/sandbox/javascript", []string{"internal/sandbox/output"},
			"a sandbox does not depend on where its programs come from"},
		{"internal/sandbox/limit", nil, "limits do not depend on what applies them"},
		{"internal/sandbox/image", nil, "the name of an image does not depend on the engine that has it"},
		{"internal/sandbox/owner", nil, "the name of a process does not depend on what carries it"},
		{"internal/sandbox/handover", nil, "the network of a program does not depend on what isolates it"},
		{"internal/sandbox/container", []string{"internal/sandbox/handover", "internal/sandbox/image",
			"internal/sandbox/limit", "internal/sandbox/output", "internal/sandbox/owner", "internal/sandbox/proxy"},
			"a sandbox does not depend on where its programs come from"},
		{"internal/sandbox/proxy", []string{"internal/netguard"}, "a proxy does not depend on the programs that use it"},
		{"internal/sandbox/process", []string{"internal/sandbox/handover", "internal/sandbox/limit",
			"internal/sandbox/output", "internal/sandbox/owner", "internal/sandbox/proxy"},
			"a sandbox does not depend on where its programs come from"},
		{"internal/config", []string{"dsl", "internal/logger", "internal/redact", "internal/secretfile", "internal/keyring"},
			"settings do not depend on the parts that they configure"},
		{"internal/config/clientconfig", slices.Concat(ambient, []string{"lease/redislease"}),
			"it converts the settings of Temporal and Redis for their clients"},
		{"internal/sealed", slices.Concat(domain, ambient, language, plain, []string{"internal/keyring"}),
			"it encrypts the sensitive values of the domain's data"},
		{"internal/payload", []string{"internal/apperror", "internal/secretfile"},
			"stores of large values do not depend on what refers to them"},
		{"internal/keyring", []string{"internal/secretfile"}, "keys do not depend on the data that they encrypt"},
		{"internal/telemetry", slices.Concat(ambient, plain,
			[]string{"internal/event", "internal/quota", "internal/problem", "internal/webhook", "internal/telemetry/otlp",
				"internal/telemetry/tracing"}),
			"metrics do not depend on the measured parts, only on the types of what they count"},
		{"internal/telemetry/otlp", nil, "exports do not depend on what they export"},
		{"internal/telemetry/tracing", nil, "spans do not depend on the traced parts, which have them in their contexts"},
		{"internal/health", ambient, "health checks use interfaces of their own"},
		{"internal/memory", []string{"internal/apperror", "internal/loop", "internal/processor"},
			"it measures only its own process"},
		{"internal/processor", []string{"internal/loop"}, "it measures only its own process"},
		{"internal/store", slices.Concat(domain, ambient, plain,
			[]string{"internal/payload", "internal/sealed", "internal/keyring"}), "it implements the domain's interfaces on a " +
			"database"},
		{"internal/migrate", slices.Concat(domain, ambient, []string{"internal/store"}),
			"it copies an older engine's database into the store's"},
		{"internal/engine", slices.Concat(domain, ambient, language,
			[]string{"conn", "dispatch/inbox", "dsl/httpmessage", "dsl/interp", "internal/keyring",
				"internal/sandbox/container", "internal/sandbox/image", "internal/sandbox/javascript", "internal/sandbox/output",
				"internal/sandbox/process", "internal/telemetry/tracing"}),
			"it implements the domain's interfaces on Temporal"},
		{"internal/rpc", slices.Concat(domain, ambient, language, plain,
			[]string{"api", "dsl/languageservice", "internal/health", "internal/rpc/jsoncodec"}),
			"it serves the domain as an API"},
		{"internal/rpc/jsoncodec", []string{"api"}, "the API's server and its clients share the JSON encoding"},
		{"internal/languageserver", []string{"dsl", "dsl/languageservice"},
			"the protocol of editors needs the language only"},
		{"internal/webui", []string{"internal/notice"}, "the web UI is files, which call the API from a browser"},
		{"internal/cli", append([]string{
			"api", "dsl", "dsl/interp", "dsl/jq", "dsl/workflowtest", "internal/config", "internal/languageserver",
			"internal/netguard", "internal/rpc/jsoncodec", "internal/notice", "internal/secretfile", "internal/terminal"}, waiting...),
			"the command line uses only the API, like any other client"},
		{"internal/app", slices.Concat(domain, ambient, language,
			[]string{"conn", "dispatch", "dispatch/inbox", "dsl/interp", "lease", "internal/config/clientconfig",
				"internal/engine", "internal/health", "internal/memory", "internal/payload", "internal/migrate", "internal/rpc",
				"internal/sandbox/container", "internal/sandbox/process", "internal/sandbox/proxy", "internal/sealed",
				"internal/keyring", "internal/store", "internal/telemetry", "internal/webui"}),
			"it composes the parts of one process"},
		{"internal/app/command", slices.Concat(ambient,
			[]string{"internal/telemetry/otlp", "internal/auth", "internal/apperror", "internal/token", "internal/app",
				"internal/memory", "internal/config/clientconfig", "internal/cli", "internal/migrate",
				"internal/sandbox/handover", "internal/store", "lease/redislease"}), "these commands run without the API"},
		{"internal/generate", slices.Concat(domain, ambient, plain,
			[]string{"api", "internal/health", "internal/notice", "internal/rpc", "internal/rpc/jsoncodec",
				"internal/telemetry"}), "it reads the tables of the packages whose files it makes"},
		{"internal/stopwatch", nil, "time measurement does not depend on the code under test"},
		{"internal/hygiene", nil, "it reads sources and imports none of them"},
		{"cmd", slices.Concat(ambient, []string{"internal/app/command", "internal/cli"}),
			"main packages contain only a few lines"},
		{"examples", slices.Concat(language, []string{"dsl/workflowtest", "internal/sandbox/javascript",
			"internal/sandbox/limit", "internal/sandbox/output", "internal/sandbox/process"}),
			"examples are documents and the test that parses them"},
		{"examples/conn", []string{"conn"}, "the example uses only the public library, as a user's program does"},
		{"examples/dispatch", []string{"conn", "dispatch", "dispatch/inbox", "lease"},
			"the example uses only the public libraries, as a user's program does"},
		{"examples/gofunctions", []string{"conn", "dsl", "function"},
			"the example uses only the public libraries, as a user's program does"},
	}
	for _, noun := range domain {
		rules = append(rules, Rule{
			noun, slices.Concat(domain, ambient, language, plain, []string{"internal/health"}), "a domain package declares " +
				"the interfaces that it needs"})
	}
	return rules
}

// Bans returns what must not be linked: P-A1, P-A2, P-A3 of the design.
func Bans() []Ban {
	const temporal = "go.temporal.io/..."
	platform := []string{"database/sql", "modernc.org/sqlite/...", "github.com/jackc/pgx/...", "connectrpc.com/...",
		"github.com/spf13/cobra"}
	// a library leaves the choice of traces and metrics to its program
	otel := "go.opentelemetry.io/..."
	// they link only the standard library
	standalone := []string{"!" + Module + "/internal/loop", "!" + Module + "/internal/backoff"}
	bans := []Ban{
		{"", []string{"go.temporal.io/server/..."}, nil, "only the devserver module embeds a Temporal server"},
		{"dsl", append([]string{temporal}, platform...), nil,
			"the workflow language is a library without an engine, a database or a server"},
		{"internal/cli", append([]string{
			Module + "/internal/store/...", Module + "/internal/engine/...", Module + "/internal/run/..."}, platform[:3]...),
			nil, "the command line calls only the API"},
		{"conn/conntype", append([]string{temporal, "google.golang.org/grpc/..."}, platform...), nil,
			"plain types need no engine"},
		{"dispatch/dispatchtype", append([]string{temporal}, platform...), nil, "plain types need no engine"},
		{"conn", append([]string{"go.temporal.io/server/...", otel}, platform...), nil,
			"the connection is a library that needs only the Temporal SDK and gRPC"},
		{"examples/conn", slices.Concat([]string{"go.temporal.io/server/...", Module + "/internal/...", Module + "/dsl/..."},
			platform, standalone), nil,
			"a program that uses the library links nothing of the platform"},
		{"examples/dispatch", slices.Concat(
			[]string{"go.temporal.io/server/...", Module + "/internal/...", Module + "/dsl/..."}, platform, standalone), nil,
			"a program that uses the libraries links nothing of the platform"},
		{"function", append([]string{"go.temporal.io/server/..."}, platform...), nil,
			"a program with functions links nothing that serves the platform"},
		{"examples/gofunctions", append([]string{"go.temporal.io/server/..."}, platform...), nil,
			"a program that uses the libraries links nothing that serves the platform"},
		{"lease", append([]string{temporal, otel}, platform...), nil, "leases are a library without an engine"},
		{"lease", []string{"github.com/redis/..."}, []string{"lease/redislease"},
			"a program with another lease store does not link Redis"},
		{"dispatch", []string{"github.com/redis/..."}, nil, "the program that runs the dispatchers chooses the lease store"},
		{"dispatch", append([]string{"go.temporal.io/server/...", otel}, platform...), nil,
			"dispatchers are a library that needs only the Temporal SDK"},
		{"internal/store", []string{temporal, "connectrpc.com/..."}, nil, "the store does not depend on Temporal or the API"},
		{"internal/rpc", []string{temporal, "database/sql"}, nil,
			"the API uses the domain's interfaces, not their implementations"},
	}
	for _, noun := range []string{
		"run", "batch", "problem", "retention", "event", "dispatcher", "workflow", "function", "worker", "project", "audit", "auth",
		"apperror", "system", "maintenance", "token", "session", "webhook", "quota", "search"} {
		bans = append(bans, Ban{"internal/" + noun, append([]string{temporal}, platform...), nil,
			"the domain makes decisions and does no I/O"})
	}
	return bans
}

// Imports is an import graph: the imports of each package, by import path.
type Imports map[string][]string

// Direction finds imports between our own packages that no rule allows, and packages without a rule.
func Direction(graph Imports, rules []Rule) []Violation {
	var violations []Violation
	for _, pkg := range ours(graph) {
		rule, ok := ruleOf(pkg, rules)
		if !ok {
			violations = append(violations,
				Violation{pkg, "has no rule; add one in Arrows with the packages that it may import"})
			continue
		}
		for _, imported := range graph[Module+"/"+pkg] {
			inside, isOurs := within(imported)
			if !isOurs || sameRule(inside, rule, rules) {
				continue
			}
			if !slices.ContainsFunc(rule.Allow, func(a string) bool { return allowedBy(inside, a, rules) }) {
				violations = append(violations, Violation{pkg, fmt.Sprintf("must not import %s: %s", inside, rule.Why)})
			}
		}
	}
	return violations
}

// sameRule reports whether the given rule applies to a package.
func sameRule(pkg string, rule Rule, rules []Rule) bool {
	own, ok := ruleOf(pkg, rules)
	return ok && own.From == rule.From
}

// allowedBy reports whether an allowed subtree includes a package. A subtree with a rule of its own must be allowed by
// its own name.
func allowedBy(pkg, allow string, rules []Rule) bool {
	rule, ok := ruleOf(pkg, rules)
	return below(pkg, allow) && ok && below(allow, rule.From)
}

// Linked finds packages that link, directly or indirectly, what they must not.
func Linked(graph Imports, bans []Ban) []Violation {
	var violations []Violation
	for _, pkg := range ours(graph) {
		for _, ban := range bans {
			exempt := slices.ContainsFunc(ban.Except, func(e string) bool { return below(pkg, e) })
			if !below(pkg, ban.From) || exempt {
				continue
			}
			if path := pathTo(graph, pkg, ban.Links); path != nil {
				violations = append(violations, Violation{pkg, fmt.Sprintf("links %s: %s", strings.Join(path, " → "), ban.Why)})
			}
		}
	}
	return violations
}

// pathTo returns the shortest chain of imports from a package of ours to any of the patterns.
func pathTo(graph Imports, from string, patterns []string) []string {
	start := Module + "/" + from
	before := map[string]string{start: ""}
	for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
		pkg := queue[0]
		if pkg != start && slices.ContainsFunc(patterns, func(p string) bool {
			return matches(pkg, p)
		}) && !slices.Contains(patterns, "!"+pkg) {
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

// ours returns the packages of the root module in a graph, relative to it, in order.
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

// below reports whether a package is a subtree's root or inside it. Everything is below the empty path.
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
