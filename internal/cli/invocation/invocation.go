// Package invocation is what every command that talks to a server shares: where the server is, which project is
// meant, how to print, and the streams.
//
//	s := invocation.New(streams)
//	s.BindClient(cmd)                  // --address, --token, --ca-file, --project, --timeout, -o
//	response, err := invocation.Call(cmd.Context(), s, s.Runs().GetRun, &signalboxv1.GetRunRequest{…}, "show run %q", id)
//	return s.Card(response.GetRun(), fields)
//
// A flag wins over a variable, a variable over the context chosen in the file of package contexts, that over the
// default. The package prints nothing by itself.
package invocation

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// Defaults where neither flag, variable nor context says otherwise.
const (
	DefaultAddress = "127.0.0.1:8080"
	DefaultProject = "default"
	DefaultTimeout = 30 * time.Second
)

// Variables of the command line's own settings.
const (
	AddressVariable = config.Prefix + "ADDRESS"
	ProjectVariable = config.Prefix + "PROJECT"
)

// Streams are the process's surroundings.
type Streams struct {
	In  io.Reader
	Out io.Writer // data
	Err io.Writer // progress and errors
	// Interactive reports whether a person can be asked: In and Err are a terminal.
	Interactive bool
	Env         config.Environment
	Now         func() time.Time
	// Program is the name by which the program was called, as a shell reads it; hints begin with it.
	Program string
	// Dev is the command that starts a server on this machine.
	Dev string
}

// Command returns a command line of this program, for hints: Command("run watch %s", id).
func (s *Invocation) Command(format string, args ...any) string {
	return s.Program + " " + fmt.Sprintf(format, args...)
}

// Invocation is the settings and the connection of one call of the program.
type Invocation struct {
	Streams

	address, project, format string
	named                    string // the context to use instead of the current one
	token, caFile            string
	jq                       string
	noHeaders                bool
	timeout                  time.Duration
	timeoutSet               bool
	transport                *http.Transport // of the client, before anything is known of the server
	client                   *http.Client
	server                   clock
}

// New returns an invocation without bound flags.
func New(streams Streams) *Invocation {
	streams.Out, streams.Err = screened(streams.Out), screened(streams.Err)
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout:   5 * time.Second,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   2,
		IdleConnTimeout:       time.Minute,
		ExpectContinueTimeout: time.Second,
	}
	return &Invocation{
		Streams:   streams,
		format:    string(output.Table),
		transport: transport,
		client:    &http.Client{Transport: transport, CheckRedirect: stay},
	}
}

// Close lets go of the connections.
func (s *Invocation) Close() { s.client.CloseIdleConnections() }

// formats are the values of -o.
func formats() []string { return append(output.Formats(), formatName) }

// BindOutput adds -o, --jq and --no-headers to a command.
func (s *Invocation) BindOutput(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&s.format, "output", "o", string(output.Table),
		"`format` of the output: table, wide, json, yaml, or name for IDs and names only")
	flags.StringVarP(&s.jq, "jq", "q", "",
		"print what this jq `expression` makes of the JSON output, texts without quotes")
	flags.BoolVar(&s.noHeaders, "no-headers", false, "tables without the line of column heads")
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp))
	global(flags, "output", "jq", "no-headers")
	inner := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(formats(), s.format) {
			return exit.Usagef("unknown output format %q; use %s", s.format, formatList())
		}
		if err := s.filterOutput(flags.Changed("output")); err != nil {
			return err
		}
		if inner != nil {
			return inner(cmd, args)
		}
		return nil
	}
}

// BindServer adds --address, --token, --ca-file, --timeout and -o to a command that concerns no project.
func (s *Invocation) BindServer(cmd *cobra.Command) {
	s.BindOutput(cmd)
	flags := cmd.Flags()
	flags.StringVar(&s.address, "address", "",
		"Signalbox `server`, host:port or URL ("+AddressVariable+"; default "+DefaultAddress+")")
	s.bindAccess(cmd)
	if flags.Lookup("context") == nil { // "workflow eval" has the context of an expression
		flags.StringVar(&s.named, "context", "",
			"`name` of the context to use: its server, token and project, instead of those of the current one and of variables")
		_ = cmd.RegisterFlagCompletionFunc("context", s.CompleteContexts) // the flag is there
		global(flags, "context")
	}
	flags.DurationVar(&s.timeout, "timeout", DefaultTimeout,
		"give up after this long; waiting and watching have no limit unless one is given")
	global(flags, "address", "token", "ca-file", "timeout")
	inner := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		s.timeoutSet = flags.Changed("timeout")
		if err := s.Check(); err != nil {
			return err
		}
		return inner(cmd, args)
	}
}

// BindClient adds the flags of BindServer and --project.
func (s *Invocation) BindClient(cmd *cobra.Command) {
	s.BindServer(cmd)
	cmd.Flags().StringVarP(&s.project, "project", "p", "",
		"`project` to work in ("+ProjectVariable+"; default "+DefaultProject+")")
	_ = cmd.RegisterFlagCompletionFunc("project", s.CompleteProjectFlag) // the flag is there
	global(cmd.Flags(), "project")
}

// Format returns what to print.
func (s *Invocation) Format() output.Format { return output.Format(s.format) }

// Project returns the project's name.
func (s *Invocation) Project() string {
	if s.named != "" {
		return first(s.project, s.context().Project, DefaultProject)
	}
	return first(s.project, s.Env[ProjectVariable], s.context().Project, DefaultProject)
}

// Address returns the server's address as it was given.
func (s *Invocation) Address() string {
	return first(s.givenAddress(), s.context().Address, DefaultAddress)
}

// givenAddress returns the address that takes precedence over that of the chosen context: that of the flag, or that of
// the variable if the context is not named; empty if there is none.
func (s *Invocation) givenAddress() string {
	if s.named != "" {
		return s.address
	}
	return first(s.address, s.Env[AddressVariable])
}

// context returns the chosen context, and an empty one where there is none; Check reports a broken file.
func (s *Invocation) context() Context {
	chosen, err := s.chosen()
	if err != nil {
		return Context{}
	}
	return chosen
}

func (s *Invocation) chosen() (Context, error) {
	file, err := LoadContexts(ContextsPath(s.Env))
	if err != nil {
		return Context{}, err
	}
	if s.named != "" {
		chosen, exists := file.Contexts[s.named]
		if !exists {
			return Context{}, fmt.Errorf("--context: there is no context %q; see \"%s\"", s.named, s.Command("context list"))
		}
		return chosen, nil
	}
	if _, exists := file.Contexts[file.Current]; file.Current != "" && !exists {
		return Context{}, fmt.Errorf("the current context, %q, does not exist; choose another with \"%s\"", file.Current,
			s.Command("context use NAME"))
	}
	return file.Contexts[file.Current], nil
}

func first(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

// Check reports settings that cannot work, before anything is sent, and makes the client from them.
func (s *Invocation) Check() error {
	if s.named != "" || s.givenAddress() == "" {
		if _, err := s.chosen(); err != nil {
			return exit.Usagef("%w", err)
		}
	}
	if err := CheckAddress(s.Address()); err != nil {
		return err
	}
	return s.prepare()
}

// CheckAddress reports text that cannot be a server's address.
func CheckAddress(address string) error {
	if _, err := baseURL(address); err != nil {
		return exit.Usagef("%q is no address of a server: %w; write host:port, for example %s, or a URL", address, err,
			DefaultAddress)
	}
	return nil
}

func baseURL(address string) (string, error) {
	text := address
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", errors.Unwrap(err) // without "parse", which repeats the text
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("the scheme is %q, not http or https", u.Scheme)
	}
	if u.Hostname() == "" {
		return "", errors.New("the host is missing")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// url is only called after Check.
func (s *Invocation) url() string {
	base, err := baseURL(s.Address())
	if err != nil {
		return "http://invalid.invalid"
	}
	return base
}

// Runs returns the client of the RunService.
func (s *Invocation) Runs() signalboxv1connect.RunServiceClient {
	return signalboxv1connect.NewRunServiceClient(s.client, s.url())
}

// Watches returns the client of the WatchService.
func (s *Invocation) Watches() signalboxv1connect.WatchServiceClient {
	return signalboxv1connect.NewWatchServiceClient(s.client, s.url())
}

// Search returns the client of the SearchService.
func (s *Invocation) Search() signalboxv1connect.SearchServiceClient {
	return signalboxv1connect.NewSearchServiceClient(s.client, s.url())
}

// Views returns the client of the ViewService.
func (s *Invocation) Views() signalboxv1connect.ViewServiceClient {
	return signalboxv1connect.NewViewServiceClient(s.client, s.url())
}

// Webhooks returns the client of the WebhookService.
func (s *Invocation) Webhooks() signalboxv1connect.WebhookServiceClient {
	return signalboxv1connect.NewWebhookServiceClient(s.client, s.url())
}

// Workflows returns the client of the WorkflowService.
func (s *Invocation) Workflows() signalboxv1connect.WorkflowServiceClient {
	return signalboxv1connect.NewWorkflowServiceClient(s.client, s.url())
}

// Projects returns the client of the ProjectService.
func (s *Invocation) Projects() signalboxv1connect.ProjectServiceClient {
	return signalboxv1connect.NewProjectServiceClient(s.client, s.url())
}

// Audit returns the client of the AuditService.
func (s *Invocation) Audit() signalboxv1connect.AuditServiceClient {
	return signalboxv1connect.NewAuditServiceClient(s.client, s.url())
}

// System returns the client of the SystemService.
func (s *Invocation) System() signalboxv1connect.SystemServiceClient {
	return signalboxv1connect.NewSystemServiceClient(s.client, s.url())
}

// Events returns the client of the EventService.
func (s *Invocation) Events() signalboxv1connect.EventServiceClient {
	return signalboxv1connect.NewEventServiceClient(s.client, s.url())
}

// Batches returns the client of the BatchService.
func (s *Invocation) Batches() signalboxv1connect.BatchServiceClient {
	return signalboxv1connect.NewBatchServiceClient(s.client, s.url())
}

// Problems returns the client of the ProblemService.
func (s *Invocation) Problems() signalboxv1connect.ProblemServiceClient {
	return signalboxv1connect.NewProblemServiceClient(s.client, s.url())
}

// Dispatchers returns the client of the DispatcherService.
func (s *Invocation) Dispatchers() signalboxv1connect.DispatcherServiceClient {
	return signalboxv1connect.NewDispatcherServiceClient(s.client, s.url())
}

// Workers returns the client of the WorkerService.
func (s *Invocation) Workers() signalboxv1connect.WorkerServiceClient {
	return signalboxv1connect.NewWorkerServiceClient(s.client, s.url())
}

// Quotas returns the client of the QuotaService.
func (s *Invocation) Quotas() signalboxv1connect.QuotaServiceClient {
	return signalboxv1connect.NewQuotaServiceClient(s.client, s.url())
}

// Sessions returns the client of the SessionService.
func (s *Invocation) Sessions() signalboxv1connect.SessionServiceClient {
	return signalboxv1connect.NewSessionServiceClient(s.client, s.url())
}

// Tokens returns the client of the TokenService.
func (s *Invocation) Tokens() signalboxv1connect.TokenServiceClient {
	return signalboxv1connect.NewTokenServiceClient(s.client, s.url())
}

// Get reads a path of the server that is no method of the API, bounded by --timeout.
func (s *Invocation) Get(ctx context.Context, path string) (status int, body []byte, err error) {
	ctx, cancel := s.Deadline(ctx)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url()+path, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }() // it is read
	const limit = 1 << 20
	body, err = io.ReadAll(io.LimitReader(response.Body, limit))
	return response.StatusCode, body, err
}

// Deadline bounds a call by --timeout, or several that share the time.
func (s *Invocation) Deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.timeout)
}

// Patience bounds a wait: by --timeout only where one was given.
func (s *Invocation) Patience(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.timeoutSet {
		return context.WithTimeout(ctx, s.timeout)
	}
	return context.WithCancel(ctx)
}

// Failed says what was being done when a call failed; nil stays nil.
func (s *Invocation) Failed(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	return s.FailedHint(err, "", what, args...)
}

// FailedHint is Failed with what to do about it.
func (s *Invocation) FailedHint(err error, hint, what string, args ...any) error {
	return &exit.Call{What: fmt.Sprintf(what, args...), Address: s.Address(), Err: err, Hint: hint, Program: s.Program,
		Dev: s.Dev}
}

// Note prints a line of progress, for people.
func (s *Invocation) Note(format string, args ...any) {
	_ = terminal.Draw(s.Err, fmt.Sprintf(format+"\n", args...)) // an error of standard error cannot be reported
}

// Heading prints the line above a further table. It is data, as the heads of columns are: where these are left out, it
// is, too.
func (s *Invocation) Heading(text string) error {
	if s.noHeaders {
		return nil
	}
	return terminal.Draw(s.Out, "\n"+text+"\n")
}

// Style says how data is shown: in colour only on a terminal, and where NO_COLOR is not set.
func (s *Invocation) Style() output.Style {
	style := output.Style{Color: s.colored(s.Out), NoHeaders: s.noHeaders}
	if IsTerminal(s.Out) {
		style.Width = Width(s.Out)
	}
	return style
}

// ErrStyle is Style for progress.
func (s *Invocation) ErrStyle() output.Style { return output.Style{Color: s.colored(s.Err)} }

func (s *Invocation) colored(w io.Writer) bool {
	return s.Env["NO_COLOR"] == "" && s.Env["TERM"] != "dumb" && IsTerminal(w)
}

// Terminal is a stream that is a terminal without being a file.
type Terminal interface{ Columns() int }

// IsTerminal reports whether a reader or writer is a terminal.
func IsTerminal(stream any) bool {
	if _, ok := stream.(Terminal); ok {
		return true
	}
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// screened returns a writer that escapes what is written to it if w is a terminal. Other writers get the exact bytes.
func screened(w io.Writer) io.Writer {
	if !IsTerminal(w) {
		return w
	}
	return terminal.NewScreen(w, func() int { return Width(w) })
}

// Width returns how many columns the terminal behind w has, 80 if that is unknown.
func Width(w io.Writer) int {
	if terminal, ok := w.(Terminal); ok {
		return terminal.Columns()
	}
	if file, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// Age writes how long ago t was, if that is known.
func (s *Invocation) Age(t *timestamppb.Timestamp) string {
	if t == nil {
		return "unknown"
	}
	return output.Age(s.Now().Sub(t.AsTime()))
}

// Unreached reports whether err means that no connection was made, so that nothing was sent.
func Unreached(err error) bool {
	var op *net.OpError
	var untrusted *tls.CertificateVerificationError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == exit.RefusedByServer) || errors.As(err, &untrusted)
}

// UnknownOutcome reports whether the request may have arrived although no answer came.
func UnknownOutcome(ctx context.Context, err error) bool {
	var answer *connect.Error
	if ctx.Err() != nil || !errors.As(err, &answer) {
		return true
	}
	return answer.Code() == connect.CodeDeadlineExceeded ||
		answer.Code() == connect.CodeUnavailable && len(answer.Details()) == 0 && !Unreached(err)
}
