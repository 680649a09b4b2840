package dsl

import (
	"time"

	"github.com/signalbox-dev/signalbox/dsl/internal/tree"
	"github.com/signalbox-dev/signalbox/dsl/internal/zone"
)

// PlatformKey is the key of document.metadata with the platform's own settings of a document.
const PlatformKey = "signalbox"

// Overlap states what happens when a schedule fires while a run that it started is still open.
type Overlap string

// The values of Overlap.
const (
	OverlapAllow      Overlap = "allow"               // the next run starts at once; the default
	OverlapSkip       Overlap = "skip"                // no run starts
	OverlapQueueOne   Overlap = "queue one"           // the next run starts after the end; further ones are skipped
	OverlapCancelOpen Overlap = "cancel the open one" // the open run is canceled, and the next one starts after its end
)

// Overlaps returns all values of [Overlap].
func Overlaps() []Overlap {
	return []Overlap{OverlapAllow, OverlapSkip, OverlapQueueOne, OverlapCancelOpen}
}

// The bounds of the settings of a schedule.
const (
	MinCatchUp = 10 * time.Second // Temporal's
	MaxCatchUp = 365 * 24 * time.Hour
	MaxJitter  = 24 * time.Hour
)

// ScheduleSettings are the settings of a schedule in document.metadata. Each is empty or nil if it is not given.
type ScheduleSettings struct {
	// TimeZone is the IANA name of the time zone of Cron.
	TimeZone string
	Overlap  Overlap
	// Jitter is the longest random delay of a fire. CatchUp is the age up to which a missed fire is made up for.
	Jitter, CatchUp *Duration
}

// IsTimeZone reports whether a name is that of a time zone in the IANA database. suggestion is for a wrong one.
func IsTimeZone(name string) (ok bool, suggestion string) {
	if _, err := zone.Load(name); err != nil {
		return false, zone.Suggest(name)
	}
	return true, ""
}

// scheduleSettings are the settings with their positions, which finishSchedule needs.
type scheduleSettings struct {
	ScheduleSettings

	given    bool
	at, zone value
}

// platformMetadata reads the platform's settings in the metadata of a document.
func (p *parser) platformMetadata(metadata value) (out scheduleSettings) {
	v, ok := metadata.member(PlatformKey)
	if !ok {
		return out
	}
	p.object(v, "metadata.signalbox", fields{
		{"schedule", false, func(v value) {
			out.given, out.at = true, v
			p.object(v, "metadata.signalbox.schedule", fields{
				{"timezone", false, func(v value) { out.zone, out.TimeZone = v, p.timeZone(v) }},
				{"overlap", false, func(v value) { out.Overlap = p.overlap(v) }},
				{"jitter", false, func(v value) { out.Jitter = p.setting(v, "jitter", 0, MaxJitter) }},
				{"catchup", false, func(v value) { out.CatchUp = p.setting(v, "catchup", MinCatchUp, MaxCatchUp) }},
			})
		}},
	})
	return out
}

func (p *parser) timeZone(v value) string {
	name := p.text(v, "timezone")
	if v.node.Kind != tree.String {
		return ""
	}
	if known, suggestion := IsTimeZone(name); !known {
		p.report(CodeValue, v, suggestion, "%.80q is not a time zone of the IANA database", name)
	}
	return name
}

func (p *parser) overlap(v value) Overlap {
	names := make([]string, len(Overlaps()))
	for i, o := range Overlaps() {
		names[i] = string(o)
	}
	return Overlap(p.oneOf(v, "overlap", names...))
}

// setting reads a duration between two bounds.
func (p *parser) setting(v value, what string, least, most time.Duration) *Duration {
	before := len(p.violations)
	d := p.interval(v, what, least)
	if d == nil || len(p.violations) > before {
		return d
	}
	if length, _ := d.Fixed(); length > most {
		p.report(CodeValue, v, "", "%s must be at most %v", what, most)
	}
	return d
}

// finishSchedule gives a schedule its settings, or reports that they concern no schedule.
func (p *parser) finishSchedule(s *Schedule, settings scheduleSettings) {
	if !settings.given {
		return
	}
	if s == nil || s.Cron == "" && s.Every == nil {
		p.report(CodeValue, settings.at, "remove it", "metadata.signalbox.schedule concerns only a document with schedule.cron "+
			"or schedule.every")
		return
	}
	if s.Every != nil && settings.TimeZone != "" {
		p.report(CodeValue, settings.zone, "remove it", "timezone concerns only schedule.cron: an interval has no time of day")
	}
	s.Settings = settings.ScheduleSettings
}
