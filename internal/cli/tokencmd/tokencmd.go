// Package tokencmd is the noun "token": credentials for calls of the API; and "whoami".
//
//	root.AddCommand(tokencmd.New(s, bootstrap), tokencmd.WhoAmI(s))
//
// The first token is created without a server, in the database, by the Bootstrap function that the program passes in.
package tokencmd

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
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// New returns the noun with its verbs. bootstrap is nil where there is no store.
func New(s *invocation.Invocation, bootstrap Bootstrap) *cobra.Command {
	noun := invocation.Noun("token", "Create, list and revoke API tokens and sessions of the web UI",
		"A token authorizes a program or a person to call a server with auth.mode tokens. It has a role in one or more "+
			"projects; \"*\" means every project.")
	noun.AddCommand(createCommand(s, bootstrap), listCommand(s), revokeCommand(s), sessionsCommand(s),
		revokeSessionCommand(s))
	return noun
}

func listCommand(s *invocation.Invocation) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tokens, newest first",
		Long: "List the tokens whose roles are all in projects of which you are an admin, newest first. The tokens " +
			"themselves are not stored.",
		Example: `  signalbox token list`,
		Args:    invocation.Args(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return list(cmd.Context(), s, limit) },
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "at most this many; 0 for all")
	s.BindServer(cmd)
	return cmd
}

func list(ctx context.Context, s *invocation.Invocation, limit int) error {
	return invocation.Listing[*signalboxv1.Token]{
		Thing: "token",
		Row: func(t *signalboxv1.Token) output.Row {
			return output.Cells(
				"ID", t.GetId(), "NAME", t.GetName(), "ROLES", roles(t.GetRoles()), "STATE", state(s, t),
				"+CREATED", output.Moment(t.GetCreateTime()), "+CREATOR", t.GetCreator(), "EXPIRES", expiry(t),
				"LAST USED", cmp.Or(output.Moment(t.GetLastUsedTime()), "never"),
			)
		},
	}.List(s, limit, func(size int32, page string) ([]*signalboxv1.Token, string, error) {
		request := &signalboxv1.ListTokensRequest{PageSize: size, PageToken: page}
		response, err := invocation.Call(ctx, s, s.Tokens().ListTokens, request, "list tokens")
		return response.GetTokens(), response.GetNextPageToken(), err
	})
}

// state is whether a token can be used.
func state(s *invocation.Invocation, t *signalboxv1.Token) string {
	switch {
	case t.GetRevokeTime() != nil:
		return "revoked"
	case t.GetExpireTime() != nil && !t.GetExpireTime().AsTime().After(s.Now()):
		return "expired"
	}
	return "valid"
}

// roles writes them as --role takes them.
func roles(all map[string]string) string {
	var words []string
	for _, project := range slices.Sorted(maps.Keys(all)) {
		words = append(words, project+"="+all[project])
	}
	return strings.Join(words, " ")
}

func revokeCommand(s *invocation.Invocation) *cobra.Command {
	var reason string
	var confirm invocation.Confirmation
	cmd := &cobra.Command{
		Use:     "revoke ID",
		Short:   "Permanently invalidate a token, at once",
		Example: `  signalbox token revoke k5x2m7qdw3a4ebfz --reason "it was in a log" --yes`,
		Args:    invocation.Args(1, 1, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := confirm.Ask(s, fmt.Sprintf("Revoke token %q? It cannot be made valid again.", args[0])); err != nil {
				return err
			}
			request := &signalboxv1.RevokeTokenRequest{Id: args[0], Reason: reason}
			response, err := invocation.Call(cmd.Context(), s, s.Tokens().RevokeToken, request, "revoke token %q", args[0])
			if err != nil {
				return err
			}
			return show(s, response.GetToken())
		},
	}
	cmd.Flags().StringVarP(&reason, "reason", "r", "", "why, for the audit log")
	confirm.Bind(cmd)
	s.BindServer(cmd)
	return cmd
}

func show(s *invocation.Invocation, t *signalboxv1.Token) error {
	return s.Card(t, []output.Field{
		{Name: "id", Value: t.GetId()}, {Name: "name", Value: t.GetName()}, {Name: "roles", Value: roles(t.GetRoles())},
		{Name: "state", Value: state(s, t)}, {Name: "expires", Value: expiry(t)},
	})
}

func expiry(t *signalboxv1.Token) string {
	if t.GetExpireTime() == nil {
		return "never"
	}
	return t.GetExpireTime().AsTime().Format(time.RFC3339)
}

// WhoAmI returns the command of that name.
func WhoAmI(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "whoami",
		Short:   "Show your identity and roles",
		Example: `  signalbox whoami`,
		Args:    invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			request := &signalboxv1.WhoAmIRequest{}
			me, err := invocation.Call(cmd.Context(), s, s.Tokens().WhoAmI, request, "read the identity")
			if err != nil {
				return err
			}
			return s.Card(me, []output.Field{
				{Name: "name", Value: me.GetName()}, {Name: "kind", Value: me.GetKind()},
				{Name: "roles", Value: cmp.Or(roles(me.GetRoles()), "none in any project")},
			})
		},
	}
	s.BindServer(cmd)
	return cmd
}

// parseRoles reads --role.
func parseRoles(given []string) (map[string]string, error) {
	found := map[string]string{}
	for _, text := range given {
		project, role, ok := strings.Cut(text, "=")
		if !ok || project == "" || role == "" {
			return nil, fmt.Errorf("%q is not of the form project=role, for example shop=operator or '*=viewer'",
				text) //nolint:err113 // for people
		}
		if _, twice := found[project]; twice {
			return nil, fmt.Errorf("project %q is named twice; it has one role", project) //nolint:err113 // for people
		}
		found[project] = role
	}
	return found, nil
}
