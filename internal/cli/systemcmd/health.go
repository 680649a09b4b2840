package systemcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// report holds the parts of the body of /readyz that are printed for people.
type report struct {
	Status   string `json:"status"`
	Stopping bool   `json:"stopping"`
	Error    string `json:"error"`
	Roles    []struct {
		Role      string   `json:"role"`
		Status    string   `json:"status"`
		Because   []string `json:"because"`
		LastError string   `json:"lastError"`
	} `json:"roles"`
}

func healthCommand(s *invocation.Invocation) *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Check that the server is ready, for containers and service managers",
		Long: `Read /readyz of the server at --address, which needs no token. It exits with 0 while the process, or with --role that role, can
work (ready or degraded), and with 5 while it cannot or does not answer. An image without a shell and curl can be checked with it.`,
		Example: `  signalbox system health
  signalbox system health --role worker --timeout 3s`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return health(cmd.Context(), s, role) },
	}
	cmd.Flags().StringVar(&role, "role", "", "only this `role`: api or worker")
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("role",
		cobra.FixedCompletions([]string{"api", "worker"}, cobra.ShellCompDirectiveNoFileComp))
	s.BindServer(cmd)
	return cmd
}

func health(ctx context.Context, s *invocation.Invocation, role string) error {
	path := "/readyz"
	if role != "" {
		path += "?role=" + url.QueryEscape(role)
	}
	status, body, err := s.Get(ctx, path)
	if err != nil {
		return exit.Errorf(exit.Unavailable, "%w", s.Failed(err, "check the health"))
	}
	var r report
	if err := json.Unmarshal(body, &r); err != nil || r.Status == "" {
		return exit.Errorf(exit.Failed,
			"check the health: %s answers %d with something else than a report: is it a Signalbox server?", s.Address(), status)
	}
	if status == http.StatusNotFound {
		return exit.Errorf(exit.NotFound, "check the health: %s", r.Error)
	}
	if s.Format().Structured() {
		var whole any
		if err := json.Unmarshal(body, &whole); err != nil {
			return err
		}
		if err := output.Value(s.Out, s.Format(), whole); err != nil {
			return err
		}
	} else if err := write(s.Out, r.lines()); err != nil {
		return err
	}
	if status != http.StatusOK {
		return exit.Silently(exit.Unavailable)
	}
	return nil
}

// lines returns one line per role, after one of the process where it is about to stop.
func (r report) lines() string {
	var text strings.Builder
	if r.Stopping {
		text.WriteString("stopping\n")
	}
	for _, one := range r.Roles {
		line := one.Role + ": " + one.Status
		if len(one.Because) > 0 {
			line += " because of " + strings.Join(one.Because, ", ")
		}
		if one.LastError != "" {
			line += ": " + one.LastError
		}
		_, _ = fmt.Fprintln(&text, terminal.Line(line)) // a builder does not fail
	}
	return text.String()
}
