// Command page turns the figures that tests have recorded into docs/promises.md.
//
//	page -tests . -out ../docs/promises.md FIGURES
package main

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/test/promise"
)

const head = `# Promises

The product's promises with figures that were recorded at full length. Every line of the table is a test that ran at full length against real
components, each in its own process, on one machine with %d processors. ` + "`make prove`" + ` repeats all of them and writes this page;
` + "`make test`" + ` runs the same tests with fewer trials and shorter outages. [The others](#not-run-at-full-length) are listed below.

| promise | what was tried | aim | trials | figure | seed | test |
|---|---|---|---|---|---|---|
`

const others = `
## Not run at full length

Tests also record figures of these promises. ` + "`make test`" + ` runs them short; the command runs them at full length and adds their figures to this page.

| promise | command |
|---|---|
`

func main() {
	tests := flag.String("tests", "", "folder of the tests that record figures; promises that have none here are listed, too")
	out := flag.String("out", "", "the page to write")
	processors := flag.Int("processors", 0, "processors of the machine, for the page")
	flag.Parse()
	if err := write(flag.Arg(0), *tests, *out, *processors); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

func write(figures, tests, out string, processors int) error {
	text, err := os.ReadFile(figures)
	if err != nil {
		return err
	}
	all, err := promise.Read(string(text))
	if err != nil {
		return err
	}
	known := map[string][]string{}
	if tests != "" {
		if known, err = recorded(tests); err != nil {
			return err
		}
	}
	return os.WriteFile(out, []byte(page(all, processors)+rest(all, known)), 0o644)
}

// page lists figures by promise. Figures of short runs are omitted: the page states that all ran at full length. Of figures
// that grow during a test, the one with the most trials is listed.
func page(all []promise.Figure, processors int) string {
	all = slices.DeleteFunc(slices.Clone(all), func(f promise.Figure) bool { return !f.Full })
	slices.SortStableFunc(all, func(a, b promise.Figure) int {
		return cmp.Or(cmp.Compare(a.Promise, b.Promise), cmp.Compare(a.Test, b.Test), cmp.Compare(a.What, b.What), cmp.Compare(b.Trials, a.Trials))
	})
	all = slices.CompactFunc(all, func(a, b promise.Figure) bool {
		return a.Promise == b.Promise && a.Test == b.Test && a.What == b.What
	})
	var b strings.Builder
	fmt.Fprintf(&b, head, processors)
	for _, f := range all {
		seed := ""
		if f.Seed != 0 {
			seed = fmt.Sprint(f.Seed)
		}
		cells := []string{f.Promise, f.What, f.Aim, fmt.Sprint(f.Trials), f.Figure, seed, "`" + f.Test + "`"}
		for i, cell := range cells {
			cells[i] = strings.ReplaceAll(cell, "|", `\|`)
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String()
}

// rest lists the promises without a figure of full length, each with the command that runs its tests so; "" if there are none.
func rest(all []promise.Figure, known map[string][]string) string {
	var b strings.Builder
	for _, promised := range slices.Sorted(maps.Keys(known)) {
		if slices.ContainsFunc(all, func(f promise.Figure) bool { return f.Full && f.Promise == promised }) {
			continue
		}
		if b.Len() == 0 {
			b.WriteString(others)
		}
		fmt.Fprintf(&b, "| %s | `make prove RUN='^(%s)'` |\n", promised, strings.Join(known[promised], `\|`))
	}
	return b.String()
}
