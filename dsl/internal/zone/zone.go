// Package zone knows the time zones of the IANA database. The database is part of the program, so that a document is
// valid on every machine or on none.
package zone

import (
	_ "embed"
	"errors"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // the database, for machines that have none

	"github.com/signalbox-dev/signalbox/dsl/internal/suggest"
)

//go:embed names.txt
var names string

// ErrUnknown means that the database has no zone with this name.
var ErrUnknown = errors.New("not a time zone of the IANA database")

// Names returns the names of all zones, in order.
func Names() []string { return strings.Fields(names) }

// Load returns a zone by its name, such as "Europe/Berlin". Names are case-sensitive.
func Load(name string) (*time.Location, error) {
	if !slices.Contains(Names(), name) {
		return nil, ErrUnknown
	}
	return time.LoadLocation(name)
}

// Suggest returns the name that a wrong one was probably meant to be, as a question, and otherwise an example.
func Suggest(name string) string {
	all := Names()
	for _, known := range all { // "berlin" and "europe/berlin"
		_, city, _ := strings.Cut(known, "/")
		if strings.EqualFold(known, name) || strings.EqualFold(city, strings.ReplaceAll(name, " ", "_")) {
			return suggest.DidYouMean(known)
		}
	}
	if s := suggest.Closest(name, all); s != "" {
		return s
	}
	return "write a name such as Europe/Berlin, America/New_York or UTC"
}
