package systemcmd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// NewRestore returns the noun "restore": what a restored database lacks compared with Temporal.
func NewRestore(s *invocation.Invocation) *cobra.Command {
	noun := invocation.Noun("restore", "Check a database that was restored from a backup", "")
	noun.AddCommand(checkCommand(s))
	return noun
}

func checkCommand(s *invocation.Invocation) *cobra.Command {
	var fix bool
	var confirm invocation.Confirmation
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Compare a restored database with Temporal before runs start again",
		Long: `Compare the database with Temporal after the restore of either, and show what the one has and the other lacks. Nothing is
changed; the servers correct most of it by themselves, within minutes. With --fix the command has them do it now, and waits until
nothing is left:

  - runs that only Temporal has get their row, with their request ID
  - runs that ended in Temporal end
  - runs that Temporal does not have fail with execution_missing
  - what is only reported stays: executions of unpublished workflows, runs that ended here and are open in Temporal

It exits with 1 while something is left to correct or is unknown. A server that finds a restored database switches the maintenance
mode on; "signalbox system maintenance off" ends it. The command requires the role admin in all projects.`,
		Example: `  signalbox restore check
  signalbox restore check --fix --yes`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := check(cmd.Context(), s)
			if err != nil {
				return err
			}
			if !fix {
				return show(s, found)
			}
			if !found.GetComplete() {
				if err := describe(s, found); err != nil {
					return err
				}
				if err := confirm.Ask(s, question(found)); err != nil {
					return err
				}
				if err := correct(cmd.Context(), s); err != nil {
					return err
				}
				if found, err = check(cmd.Context(), s); err != nil {
					return err
				}
			}
			return show(s, found)
		},
	}
	cmd.Flags().BoolVar(&fix, "fix", false,
		"correct what can be corrected, and wait until all ended executions were searched")
	confirm.Bind(cmd)
	s.BindServer(cmd)
	return cmd
}

func check(ctx context.Context, s *invocation.Invocation) (*signalboxv1.CheckRestoreResponse, error) {
	return invocation.Call(ctx, s, s.System().CheckRestore, &signalboxv1.CheckRestoreRequest{},
		"compare the database with Temporal")
}

// correct has the server correct differences until all ended executions were searched.
func correct(ctx context.Context, s *invocation.Invocation) error {
	var done int64
	for {
		report, err := invocation.Call(ctx, s, s.System().Reconcile, &signalboxv1.ReconcileRequest{}, "correct the runs")
		if err != nil {
			return err
		}
		for _, c := range report.GetCorrections() {
			if c.GetApplied() {
				done++
			}
		}
		until := report.GetSearchedUntil()
		if until == nil {
			s.Note("%s corrected", output.Count(done, "run"))
			return nil
		}
		s.Note("%s corrected; executions that ended before %s were searched", output.Count(done, "run"), output.Moment(until))
	}
}

func question(c *signalboxv1.CheckRestoreResponse) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(c.GetDifferences())) {
		parts = append(parts, fmt.Sprintf("%s %d", kind, c.GetDifferences()[kind]))
	}
	return fmt.Sprintf("Correct the differences (%s)?", cmp.Or(strings.Join(parts, ", "), "none yet"))
}

// show prints a check; the exit code tells whether it is complete.
func show(s *invocation.Invocation, c *signalboxv1.CheckRestoreResponse) error {
	if err := describe(s, c); err != nil || c.GetComplete() {
		return err
	}
	return exit.Errorf(exit.Failed, "the database and Temporal differ, or it is not known whether they do")
}

func describe(s *invocation.Invocation, c *signalboxv1.CheckRestoreResponse) error {
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), c)
	}
	return output.Card(s.Out, s.Style(), fields(s, c))
}

func fields(s *invocation.Invocation, c *signalboxv1.CheckRestoreResponse) []output.Field {
	now := c.GetTime().AsTime()
	return []output.Field{
		{Name: "restored", Value: restored(c)},
		{Name: "maintenance", Value: terminal.Line(restoreMaintenanceLine(c.GetMaintenance(), now))},
		{Name: "newest row", Value: part(c, "rows", newest(c, now))},
		{Name: "without a row", Value: part(c, "comparison", lost(c))},
		{Name: "forgotten", Value: part(c, "comparison", forgotten(c))},
		{Name: "adopted", Value: part(c, "rows",
			since(c.Adopted, "run", c))},
		{Name: "without execution", Value: part(c, "comparison", output.Count(c.GetDifferences()["execution_missing"], "run")+
			failed(c))},
		{Name: "behind Temporal",
			Value: part(c, "comparison", output.Count(c.GetDifferences()["finished"]+c.GetDifferences()["caught_up"], "run"))},
		{Name: "only reported", Value: part(c, "comparison", reported(c))},
		{Name: "not compared", Value: part(c, "comparison", notCompared(c))},
		{Name: "large values", Value: part(c, "payloads", payloads(c))},
		{Name: "schedules", Value: part(c, "schedules",
			lacking(c.GetSchedules(), "schedule", c.GetLackingSchedules(), "not as in Temporal"))},
		{Name: "dispatchers", Value: part(c, "dispatchers",
			lacking(c.GetDispatchers(), "dispatcher", c.GetUnownedDispatchers(), "without an owner"))},
		{Name: "sealing keys", Value: part(c, "keys", keys(c))},
		{Name: "result", Value: result(s, c)},
	}
}

// part is a value, or why it is unknown.
func part(c *signalboxv1.CheckRestoreResponse, name, value string) string {
	if why := c.GetErrors()[name]; why != "" {
		return "unknown: " + terminal.Line(why)
	}
	return value
}

func restored(c *signalboxv1.CheckRestoreResponse) string {
	if c.GetRestoredTime() == nil {
		return part(c, "restore", "no restore was found")
	}
	return fmt.Sprintf("found %s: the backup is of %s or later", output.Moment(c.GetRestoredTime()),
		output.Moment(c.GetBackupTime()))
}

func restoreMaintenanceLine(m *signalboxv1.Maintenance, now time.Time) string {
	switch {
	case m == nil:
		return "unknown"
	case !m.GetActive():
		return "off: runs start"
	}
	return fmt.Sprintf("on for %s, by %s: no new runs start", output.Span(now.Sub(m.GetSince().AsTime())), m.GetActor())
}

// newest is the age gap: the newest row, and how much newer the newest execution without a row is.
func newest(c *signalboxv1.CheckRestoreResponse, now time.Time) string {
	row := c.GetNewestRowTime()
	if row == nil {
		return "none"
	}
	line := fmt.Sprintf("%s, %s ago", output.Moment(row), output.Span(now.Sub(row.AsTime())))
	if newer := c.GetLost().GetNewestTime(); newer != nil && newer.AsTime().After(row.AsTime()) {
		line += fmt.Sprintf("; Temporal has executions that are %s newer", output.Span(newer.AsTime().Sub(row.AsTime())))
	}
	return line
}

// lost are the executions without a row, by age.
func lost(c *signalboxv1.CheckRestoreResponse) string {
	l := c.GetLost()
	line := output.Count(l.GetOpen()+l.GetEnded(), "execution")
	if l.GetOpen()+l.GetEnded() > 0 {
		line += fmt.Sprintf(": %d open, %d ended; started up to an hour ago %d, up to a day %d, earlier %d",
			l.GetOpen(), l.GetEnded(), l.GetUpToHour(), l.GetUpToDay(), l.GetOlder())
	}
	if l.GetYoung() > 0 {
		line += fmt.Sprintf("; %d more started too recently to tell", l.GetYoung())
	}
	if until := c.GetComparison().GetSearchedUntil(); until != nil {
		line += fmt.Sprintf("; those that ended after %s were not searched yet", output.Moment(until))
	}
	return line
}

// forgotten is the period whose runs cannot be found, and whose request IDs are at risk.
func forgotten(c *signalboxv1.CheckRestoreResponse) string {
	from, until := c.GetLost().GetForgottenFrom(), c.GetLost().GetForgottenUntil()
	if from == nil {
		return ""
	}
	return fmt.Sprintf("runs that ended from %s to %s are unknown: Temporal no longer has them. A start that repeats "+
		"one of their request IDs starts a new run",
		output.Moment(from), output.Moment(until))
}

func since(n *int64, noun string, c *signalboxv1.CheckRestoreResponse) string {
	if n == nil {
		return ""
	}
	return output.Count(*n, noun) + " since " + output.Moment(c.GetBackupTime())
}

func failed(c *signalboxv1.CheckRestoreResponse) string {
	if n := c.FailedMissing; n != nil {
		return fmt.Sprintf("; %d failed with execution_missing since %s", *n, output.Moment(c.GetBackupTime()))
	}
	return ""
}

func reported(c *signalboxv1.CheckRestoreResponse) string {
	var foreign int64
	for _, f := range c.GetComparison().GetForeign() {
		foreign += f.GetCount()
	}
	return fmt.Sprintf("%s without a published workflow, %s that ended here and open in Temporal",
		output.Count(foreign, "execution"), output.Count(c.GetDifferences()["reopened_in_temporal"], "run"))
}

func notCompared(c *signalboxv1.CheckRestoreResponse) string {
	compared := c.GetComparison()
	var parts []string
	if n := compared.GetFailed(); n > 0 {
		parts = append(parts, fmt.Sprintf("%s: %s", output.Count(n, "run"), terminal.Line(compared.GetFailedBecause())))
	}
	if n := compared.GetWithheld(); n > 0 {
		parts = append(parts, fmt.Sprintf("%s: %s", output.Count(n, "open run"),
			terminal.Line(compared.GetWithheldBecause())))
	}
	return strings.Join(parts, "; ")
}

// payloads are the open runs that refer to a lost value.
func payloads(c *signalboxv1.CheckRestoreResponse) string {
	found := c.GetLostPayloads()
	line := fmt.Sprintf("none is lost of the %s searched", output.Count(found.GetSearched(), "open run"))
	if n := found.GetRuns(); n > 0 {
		line = fmt.Sprintf("%d of %s searched: stuck with PAYLOAD_MISSING where they need it: %s", n,
			output.Count(found.GetSearched(), "open run"), strings.Join(found.GetSampleRunIds(), ", "))
		if int(n) > len(found.GetSampleRunIds()) {
			line += ", …"
		}
	}
	if !found.GetAllSearched() {
		line += "; there was no time for the others"
	}
	return line
}

// lacking is a number of things with those that are not in order.
func lacking(all int64, noun string, list []string, what string) string {
	line := output.Count(all, noun)
	if len(list) > 0 {
		const shown = 5
		names := strings.Join(list[:min(len(list), shown)], ", ")
		line += fmt.Sprintf(", %d %s: %s", len(list), what, terminal.Line(names))
	}
	return line
}

// keys are the keys that have sealed values, with the open runs that need them.
func keys(c *signalboxv1.CheckRestoreResponse) string {
	var parts []string
	for _, k := range c.GetSealingKeys() {
		line := fmt.Sprintf("%s: %s", terminal.Line(k.GetId()), output.Count(k.GetOpenRuns(), "open run"))
		if !k.GetConfigured() {
			line += ", this server does not have it"
		}
		parts = append(parts, line)
	}
	return cmp.Or(strings.Join(parts, "; "), "nothing was sealed yet")
}

func result(s *invocation.Invocation, c *signalboxv1.CheckRestoreResponse) string {
	switch {
	case !c.GetComplete():
		return fmt.Sprintf("differences are left, or parts are unknown; the servers compare every 30 seconds, \"%s\" does "+
			"now", s.Command("restore check --fix"))
	case c.GetMaintenance().GetActive():
		return fmt.Sprintf("complete; \"%s\" lets runs start", s.Command("system maintenance off"))
	}
	return "complete"
}
