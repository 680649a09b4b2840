package hygiene

import (
	"fmt"
	"maps"
	"slices"
)

// TestLibraries are import paths of libraries for tests, which no program needs; those that end with /... include
// everything below.
func TestLibraries() []string {
	return []string{
		"testing/...", "net/http/httptest", "github.com/stretchr/...", "github.com/golang/mock/...", "go.uber.org/mock/...",
		"github.com/davecgh/...",
		"github.com/pmezard/...", "go.uber.org/goleak/...", "gotest.tools/...", "github.com/onsi/...",
		"gopkg.in/check.v1/...", "go.temporal.io/sdk/testsuite/...",
		Module + "/conn/conntest/...", Module + "/lease/leasetest/...", Module + "/dispatch/inbox/inboxtest/...",
		Module + "/internal/payload/payloadtest/...", Module + "/internal/sealed/sealedtest/...", Module +
			"/internal/store/storetest/...",
	}
}

// Importer is a tree of packages of others that import libraries for tests into programs, and why that cannot be
// avoided.
type Importer struct{ Tree, Why string }

// TestImporters returns the importers that are accepted in the programs of a module. What they import is linked only as
// far as the linker cannot prove that nothing calls it.
func TestImporters(module string) []Importer {
	sdk := []Importer{
		{"go.temporal.io/sdk/internal", "the SDK implements its test suite in the package that implements its workers"},
		{"go.temporal.io/api/workflowservicemock", "the package of the SDK imports it for the test suite"},
	}
	if module != "devserver" {
		return sdk
	}
	return append(sdk,
		Importer{"go.temporal.io/server", "Temporal's server has its mocks beside the interfaces, outside of test files"},
		Importer{"github.com/apache/thrift", "the client of an archive of Temporal's server logs to tests"},
		Importer{"github.com/uber-go/tally",
			"the metrics of Temporal's server pin the generator of their mocks by an import"},
		Importer{"k8s.io/apimachinery", "a library of Temporal's server prints values by the printer that tests use"},
	)
}

// TestCode finds libraries for tests that the programs in a graph import, other than through the accepted importers,
// and accepted importers that import none.
func TestCode(graph Imports, accepted []Importer) []Violation {
	var violations []Violation
	used := map[string]bool{}
	isTest := func(pkg string) bool {
		return slices.ContainsFunc(TestLibraries(), func(pattern string) bool { return matches(pkg, pattern) })
	}
	for _, pkg := range slices.Sorted(maps.Keys(graph)) {
		if isTest(pkg) {
			continue
		}
		importer := slices.IndexFunc(accepted, func(i Importer) bool { return matches(pkg, i.Tree+"/...") })
		for _, imported := range graph[pkg] {
			switch {
			case !isTest(imported):
			case importer >= 0:
				used[accepted[importer].Tree] = true
			default:
				violations = append(violations, Violation{pkg, "imports " + imported + ", which is for tests, into a program"})
			}
		}
	}
	for _, i := range accepted {
		if !used[i.Tree] {
			violations = append(violations,
				Violation{i.Tree, fmt.Sprintf("imports no library for tests any more; remove it from TestImporters (%s)", i.Why)})
		}
	}
	return violations
}
