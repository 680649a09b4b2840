package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

func checkConfigCommand(
	s *invocation.Invocation, layers []config.Layer,
	services func(context.Context, *config.Config, func(string, ...any)) config.Violations,
) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check-config",
		Short: "Check the configuration of a server, and report all violations at once",
		Long: `Check the configuration a server would start with: the file, the variables and the flags given here. Every violation is
printed with the key, the source of its value and what to do. Files of credentials are read. Nothing is started.
It connects to the database, if that exists, and reads whether a sealing key is missing that something needs; and to the store of
payloads, if that is not the database: a small value is written there and deleted. A processor limit of this machine below what a
server requires is noted.
Exits with 1 when there is a violation, also for a violation with which a server starts because it may be solved meanwhile:
a client certificate that has expired, a store of payloads that is unavailable.`,
		Example: `  signalbox check-config --config signalbox.yaml`,
		Args:    invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(config.Options{Flags: cmd.Flags(), Env: s.Env, Layers: layers})
			var violations config.Violations
			if err != nil && !errors.As(err, &violations) {
				return err
			}
			if cfg != nil {
				violations = cfg.Warnings
				if services != nil {
					violations = append(violations, services(cmd.Context(), cfg, s.Note)...)
				}
			}
			return printViolations(s, violations)
		},
	}
	config.BindUnlisted(cmd.Flags())
	s.BindOutput(cmd)
	return cmd
}

func printViolations(s *invocation.Invocation, violations config.Violations) error {
	if s.Format().Structured() {
		if err := output.Value(s.Out, s.Format(), append(config.Violations{}, violations...)); err != nil {
			return err
		}
	} else {
		for _, p := range violations {
			if err := terminal.Draw(s.Out, p.String()+"\n"); err != nil {
				return err
			}
		}
	}
	if len(violations) > 0 {
		return exit.Silently(exit.Failed)
	}
	s.Note("no violations")
	return nil
}

// buildInfo is the JSON of "version".
type buildInfo struct {
	Version  string      `json:"version"`
	Commit   string      `json:"commit,omitempty"`
	Modified bool        `json:"modified,omitempty"`
	Go       string      `json:"go"`
	Platform string      `json:"platform"`
	Server   *serverInfo `json:"server,omitempty"`
}

// serverInfo is what the server says of itself.
type serverInfo struct {
	Version     string `json:"version"`
	Interpreter int32  `json:"interpreter"`
	ServerID    string `json:"serverId"`
}

func versionCommand(s *invocation.Invocation, version string) *cobra.Command {
	var server, licences bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program, and with --server the server's",
		Example: `  signalbox version
  signalbox version --server
  signalbox version --licences`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if licences && server {
				return exit.Usagef("--licences and --server exclude each other")
			}
			if licences {
				return printLicences(s)
			}
			return printVersion(cmd.Context(), s, thisBuild(version), server)
		},
	}
	cmd.Flags().BoolVar(&server, "server", false, "ask the server for its version too")
	cmd.Flags().BoolVar(&licences, "licences", false,
		"print the licences of the software of others that this program contains")
	s.BindServer(cmd)
	return cmd
}

func printLicences(s *invocation.Invocation) error {
	text, err := notice.Text()
	if err != nil {
		return err
	}
	if s.Format().Structured() {
		return output.Value(s.Out, s.Format(), map[string]string{"licences": text})
	}
	_, err = io.WriteString(s.Out, text)
	return err
}

func printVersion(ctx context.Context, s *invocation.Invocation, info buildInfo, server bool) error {
	if server {
		request := &signalboxv1.GetVersionRequest{}
		response, err := invocation.Call(ctx, s, s.System().GetVersion, request, "get the server's version")
		if err != nil {
			return err
		}
		info.Server = &serverInfo{
			Version: response.GetVersion(), Interpreter: response.GetInterpreter(), ServerID: response.GetServerId(),
		}
	}
	if s.Format().Structured() {
		return output.Value(s.Out, s.Format(), info)
	}
	line := info.line()
	if info.Server != nil {
		line += fmt.Sprintf("\nserver %s (interpreter %d, %s)", info.Server.Version, info.Server.Interpreter,
			info.Server.ServerID)
	}
	return terminal.Draw(s.Out, line+"\n")
}

// line describes the build in one line.
func (i buildInfo) line() string {
	if i.Commit == "" {
		return fmt.Sprintf("signalbox %s (%s, %s)", i.Version, i.Go, i.Platform)
	}
	return fmt.Sprintf("signalbox %s (commit %s, %s, %s)", i.Version, i.Commit, i.Go, i.Platform)
}

func thisBuild(version string) buildInfo {
	info := buildInfo{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	if info.Version == "" {
		info.Version = strings.Trim(build.Main.Version, "()") // "(devel)" outside a released module
	}
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.Commit = setting.Value
		case "vcs.modified":
			info.Modified = setting.Value == "true"
		}
	}
	return info
}
