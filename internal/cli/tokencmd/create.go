package tokencmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/config"
)

// Wanted is a token to be made.
type Wanted struct {
	Name  string
	Roles map[string]string
	// ExpiresAt is zero for one that does not expire.
	ExpiresAt time.Time
	// Force makes one although there is an admin's already.
	Force bool
}

// Made is a token that was made, and what it is called with.
type Made struct {
	ID, Secret string
	Creator    string
	CreatedAt  time.Time
}

// Bootstrap makes a token in the store that the configuration names, of which the flags are.
type Bootstrap func(ctx context.Context, flags *pflag.FlagSet, w Wanted) (Made, error)

type createFlags struct {
	name, expires, file string
	roles               []string
	bootstrap, force    bool
}

func createCommand(s *invocation.Invocation, bootstrap Bootstrap) *cobra.Command {
	var flags createFlags
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a token, and print it once",
		Long: `Create a token. The token is printed once, on standard output, and not stored. You must be an admin of every
project in which it has a role.

With --bootstrap the first token is created, without a server, in the database of the configuration; it has the role admin in
every project unless --role is given. While a valid token of such an admin exists, --bootstrap is refused; use --force if it
is lost.

With --file the token is written to a new file, which its owner and group can read, instead of standard output. If the file exists, no
token is created, so that the command can be repeated, for example at each start of a stack of containers.`,
		Example: `  signalbox token create --bootstrap --config signalbox.yaml --name ada
  signalbox token create --name ci --role shop=operator --expires 90d
  signalbox token create --name prometheus --role '*=viewer'`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return create(cmd, s, flags, bootstrap) },
	}
	cmd.Flags().StringVar(&flags.name, "name", "", "`name` of the person or program that uses it, for the audit log")
	cmd.Flags().StringArrayVar(&flags.roles, "role", nil,
		"`project=role`: viewer, operator, publisher or admin; '*' is every project; may be given more than once")
	cmd.Flags().StringVar(&flags.expires, "expires", "",
		"`time` until it expires (\"12h\", \"90d\"), or time of expiry (2027-01-31T12:00:00Z); empty: never")
	cmd.Flags().StringVar(&flags.file, "file", "", "`file` to write the token to; nothing is created if it exists")
	if bootstrap != nil {
		cmd.Flags().BoolVar(&flags.bootstrap, "bootstrap", false, "create the first token directly in the database")
		cmd.Flags().BoolVar(&flags.force, "force", false, "with --bootstrap: create it even if an admin token exists")
		config.BindUnlisted(cmd.Flags())
	}
	s.BindServer(cmd)
	return cmd
}

func create(cmd *cobra.Command, s *invocation.Invocation, flags createFlags, bootstrap Bootstrap) error {
	wanted, err := parseRoles(flags.roles)
	if err != nil {
		return exit.Usagef("--role: %w", err)
	}
	if flags.force && !flags.bootstrap {
		return exit.Usagef("--force: there is nothing to force without --bootstrap")
	}
	if flags.name == "" {
		return exit.Usagef("--name is missing: the audit log records it with each action")
	}
	if flags.bootstrap && len(wanted) == 0 {
		wanted = map[string]string{"*": "admin"}
	}
	if len(wanted) == 0 {
		return exit.Usagef("--role is missing: write for example --role shop=operator")
	}
	expires, err := s.Ahead("expires", flags.expires)
	if err != nil {
		return err
	}
	var file *invocation.File
	if flags.file != "" {
		file, err = openTokenFile(flags.file)
		if err != nil {
			return exit.Usagef("--file: the file cannot be written: %w", err)
		}
		if file == nil {
			s.Note("%s exists: no token is created", flags.file)
			return nil
		}
		defer file.Discard()
	}
	ctx, cancel := s.Deadline(cmd.Context())
	defer cancel()
	var made *signalboxv1.CreateTokenResponse
	if flags.bootstrap {
		made, err = bootstrapped(ctx, cmd.Flags(), bootstrap,
			Wanted{Name: flags.name, Roles: wanted, ExpiresAt: expires, Force: flags.force})
	} else {
		request := &signalboxv1.CreateTokenRequest{Name: flags.name, Roles: wanted, ExpireTime: invocation.Timestamp(expires)}
		made, err = invocation.Call(ctx, s, s.Tokens().CreateToken, request, "create token %q", flags.name)
	}
	if err != nil {
		return err
	}
	return deliver(s, made, file, flags.file)
}

// deliver writes a token to its file, or prints it.
func deliver(s *invocation.Invocation, made *signalboxv1.CreateTokenResponse, file *invocation.File,
	path string) error {
	t := made.GetToken()
	where := "It is printed only once:"
	if file != nil {
		if err := saveToken(file, made.GetSecret()); err != nil {
			return exit.Errorf(exit.Failed, "token %s was created, but cannot be saved: %w; revoke it with \"%s\"", t.GetId(),
				err, s.Command("token revoke %s", t.GetId()))
		}
		made.Secret, where = "", "It is in "+path
	}
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), made)
	}
	s.Note("token %s (%s), %s; it expires: %s. %s", t.GetId(), t.GetName(), roles(t.GetRoles()), expiry(t), where)
	if file != nil {
		return nil
	}
	_, err := fmt.Fprintln(s.Out, made.GetSecret())
	return err
}

// tokenMode is the mode of a token's file, whatever the umask: a service reads it by its group.
const tokenMode = 0o640

// openTokenFile prepares the file before a token is created, so that no token is lost because it cannot be saved. It
// returns nil without an error if the file exists: one that was interrupted does not, because the file appears under
// its name complete or not at all.
func openTokenFile(path string) (*invocation.File, error) {
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() {
		return nil, nil
	}
	return invocation.CreateFile(path, tokenMode)
}

func saveToken(f *invocation.File, secret string) error {
	_, err := fmt.Fprintln(f, secret)
	if info, statErr := f.Stat(); statErr == nil && info.Mode().IsRegular() {
		err = errors.Join(err, f.Chmod(tokenMode))
	}
	return errors.Join(err, f.Commit())
}

// bootstrapped is what a server would have answered.
func bootstrapped(ctx context.Context, flags *pflag.FlagSet, bootstrap Bootstrap,
	w Wanted) (*signalboxv1.CreateTokenResponse, error) {
	made, err := bootstrap(ctx, flags, w)
	if err != nil {
		return nil, err
	}
	return &signalboxv1.CreateTokenResponse{Secret: made.Secret, Token: &signalboxv1.Token{
		Id: made.ID, Name: w.Name, Roles: w.Roles, Creator: made.Creator,
		CreateTime: timestamppb.New(made.CreatedAt.Truncate(time.Microsecond)),
		ExpireTime: invocation.Timestamp(w.ExpiresAt),
	}}, nil
}
