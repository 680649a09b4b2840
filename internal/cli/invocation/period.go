package invocation

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// Period is the pair of flags --since and --until of a command that chooses by time.
type Period struct {
	prefix, since, until string
}

// Bind adds the flags; what begins their help: "only runs created".
func (p *Period) Bind(cmd *cobra.Command, what string) { p.BindTo(cmd.Flags(), "", what) }

// BindTo adds the flags with names that begin with a prefix: "ended-" for --ended-since and --ended-until.
func (p *Period) BindTo(flags *pflag.FlagSet, prefix, what string) {
	p.prefix = prefix
	flags.StringVar(&p.since, prefix+"since", "", what+" in the last `time` (\"2h\", \"7d\", \"1w\"), or since a day "+
		"(yesterday, 2026-01-31) or a moment (2026-01-31T12:00:00Z), in UTC")
	flags.StringVar(&p.until, prefix+"until", "", what+" before this `time`")
}

// Length returns the length of time that --since names; 0 if it names a moment or was not given.
func (p *Period) Length() time.Duration {
	if _, is := moment(p.since); is {
		return 0
	}
	length, _ := span(p.since) // Bounds reports the error; a day such as yesterday has none
	return length
}

// LengthVar adds a flag that is a length of time, also in days and weeks.
func LengthVar(flags *pflag.FlagSet, value *time.Duration, name, usage string) {
	flags.Var((*length)(value), name, usage)
}

// length is the value of a flag.
type length time.Duration

// Set reads the text of the flag.
func (l *length) Set(text string) error {
	given, err := span(text)
	if err != nil || given <= 0 {
		return errors.New(`it is no length of time; write it like "90m" or "7d"`)
	}
	*l = length(given)
	return nil
}

// String returns the length; empty for none.
func (l *length) String() string {
	if *l == 0 {
		return ""
	}
	return output.Span(time.Duration(*l))
}

// Type names the value in the help.
func (l *length) Type() string { return "duration" }

// Bounds reads the flags; nil where one was not given.
func (p *Period) Bounds(s *Invocation) (since, until *timestamppb.Timestamp, err error) {
	from, err := s.Time(p.prefix+"since", p.since)
	if err != nil {
		return nil, nil, err
	}
	to, err := s.Time(p.prefix+"until", p.until)
	if err == nil && !from.IsZero() && !to.IsZero() && !from.Before(to) {
		err = exit.Usagef("--%ssince %s is not before --%suntil %s: nothing is between them", p.prefix, p.since, p.prefix,
			p.until)
	}
	return Timestamp(from), Timestamp(to), err
}
