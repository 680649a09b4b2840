package tokencmd

import (
	"context"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

func sessionsCommand(s *invocation.Invocation) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List open sessions of the web UI, newest first",
		Long: `List the open sessions of the web UI: those of your own token, and those of tokens whose roles are all in projects of which you
are an admin, newest first.`,
		Example: `  signalbox token sessions`,
		Args:    invocation.Args(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return listSessions(cmd.Context(), s, limit) },
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "at most this many; 0 for all")
	s.BindServer(cmd)
	return cmd
}

func listSessions(ctx context.Context, s *invocation.Invocation, limit int) error {
	return invocation.Listing[*signalboxv1.Session]{
		Thing: "open session",
		Row: func(one *signalboxv1.Session) output.Row {
			return output.Cells(
				"ID", one.GetId(), "NAME", one.GetTokenName(), "TOKEN", one.GetTokenId(),
				"CREATED", output.Moment(one.GetCreateTime()), "LAST USED", output.Moment(one.GetLastUsedTime()),
				"ENDS UNUSED", output.Moment(one.GetIdleExpireTime()), "EXPIRES", output.Moment(one.GetExpireTime()),
			)
		},
	}.List(s, limit, func(size int32, page string) ([]*signalboxv1.Session, string, error) {
		request := &signalboxv1.ListSessionsRequest{PageSize: size, PageToken: page}
		response, err := invocation.Call(ctx, s, s.Sessions().ListSessions, request, "list sessions")
		return response.GetSessions(), response.GetNextPageToken(), err
	})
}

func revokeSessionCommand(s *invocation.Invocation) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "revoke-session ID",
		Short:   "End a session of the web UI, at once; its token stays valid",
		Example: `  signalbox token revoke-session k5x2m7qdw3a4ebfz --reason "the laptop is lost"`,
		Args:    invocation.Args(1, 1, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &signalboxv1.RevokeSessionRequest{Id: args[0], Reason: reason}
			response, err := invocation.Call(cmd.Context(), s, s.Sessions().RevokeSession, request, "end session %q", args[0])
			if err != nil {
				return err
			}
			one := response.GetSession()
			return s.Card(one, []output.Field{
				{Name: "id", Value: one.GetId()}, {Name: "name", Value: one.GetTokenName()},
				{Name: "token", Value: one.GetTokenId()},
				{Name: "ended", Value: output.Moment(one.GetEndTime())},
			})
		},
	}
	cmd.Flags().StringVarP(&reason, "reason", "r", "", "why, for the audit log")
	s.BindServer(cmd)
	return cmd
}
