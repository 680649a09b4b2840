// Command page turns the figures that tests have recorded into the tables of docs/reliability.md and into
// docs/alerting.md.
//
//	page -tests . -figures promise/figures.jsonl -reliability ../docs/reliability.md -alerts ../docs/alerting.md [NEW]
//
// NEW is a file that tests have written. Its figures replace those of the same tests in the file of all figures, which
// is kept in the repository: promises are proved in several runs, on several days.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/test/promise"
)

func main() {
	var f files
	flag.StringVar(&f.tests, "tests", "",
		"folder of the tests that record figures; promises that have none here are listed, too")
	flag.StringVar(&f.figures, "figures", "", "file of all figures; new ones are written to it")
	flag.StringVar(&f.reliability, "reliability", "", "the page whose tables are written")
	flag.StringVar(&f.alerts, "alerts", "", "the page of the times of alerts to write")
	processors := flag.Int("processors", 0, "processors of the machine, for the page")
	flag.Parse()
	f.fresh = flag.Arg(0)
	if err := f.write(*processors); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

// files are the files that the command reads and writes.
type files struct{ tests, figures, fresh, reliability, alerts string }

func (f files) write(processors int) error {
	all, err := read(f.figures)
	if err != nil {
		return err
	}
	if f.fresh != "" {
		fresh, err := read(f.fresh)
		if err != nil {
			return err
		}
		all = merge(all, fresh)
		if err := promise.Write(f.figures, all); err != nil {
			return err
		}
	}
	known, err := recorded(f.tests)
	if err != nil {
		return err
	}
	tables, err := os.ReadFile(f.reliability)
	if err != nil {
		return err
	}
	filled, err := fill(string(tables), all, known, processors)
	if err != nil {
		return fmt.Errorf("%s: %w", f.reliability, err)
	}
	if err := os.WriteFile(f.reliability, []byte(filled), 0o644); err != nil {
		return err
	}
	return os.WriteFile(f.alerts, []byte(alertsPage(all, processors)), 0o644)
}

func read(path string) ([]promise.Figure, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return promise.Read(string(text))
}

// merge replaces the figures of the tests that have run again at full length. A test that has recorded no figure keeps
// its earlier ones.
func merge(all, fresh []promise.Figure) []promise.Figure {
	fresh = slices.DeleteFunc(slices.Clone(fresh), func(f promise.Figure) bool { return !f.Full })
	merged := slices.DeleteFunc(slices.Clone(all), func(old promise.Figure) bool {
		return slices.ContainsFunc(fresh, func(f promise.Figure) bool { return f.Test == old.Test })
	})
	merged = append(merged, fresh...)
	slices.SortStableFunc(merged, order)
	return merged
}

// order sorts by promise, test, subject and seed; of one subject and seed the figure with the most trials is first.
func order(a, b promise.Figure) int {
	return cmp.Or(cmp.Compare(a.Promise, b.Promise), cmp.Compare(a.Test, b.Test), cmp.Compare(a.What, b.What),
		cmp.Compare(a.Seed, b.Seed),
		cmp.Compare(b.Trials, a.Trials))
}

// newest returns the figures of full length in order, without those of alerts, which have a page of their own. Of
// figures that grow during a test, the one with the most trials is kept.
func newest(all []promise.Figure) []promise.Figure {
	all = slices.DeleteFunc(slices.Clone(all), func(f promise.Figure) bool { return !f.Full || f.Alert != nil })
	slices.SortStableFunc(all, order)
	return slices.CompactFunc(all, func(a, b promise.Figure) bool {
		return a.Promise == b.Promise && a.Test == b.Test && a.What == b.What && a.Seed == b.Seed
	})
}

func seedOf(f promise.Figure) string {
	if f.Seed == 0 {
		return ""
	}
	return fmt.Sprint(f.Seed)
}

// row returns a row of a table.
func row(cells ...string) string {
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(cell, "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}
