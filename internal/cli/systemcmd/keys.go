package systemcmd

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/terminal"
)

func keysCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "List the keys that have sealed values, and what needs each of them",
		Long: `List the keys that have sealed values, the last used first, with what still needs each of them: open runs that were
created while it was the active key or before, events that wait for delivery, incomplete sets of events, scheduled starts, and webhooks.

active      the server at --address seals with it
needed      something needs it: leave it in encryption.keys
missing     something needs it, and this server does not have it
not needed  it can be removed from encryption.keys; originals that it sealed are then shown as marks`,
		Example: `  signalbox system keys
  signalbox system keys --jq '.sealingKeys[] | select(.openRuns == "0") | .id'`,
		Args: invocation.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return listKeys(cmd.Context(), s) },
	}
	s.BindServer(cmd)
	return cmd
}

func listKeys(ctx context.Context, s *invocation.Invocation) error {
	found, err := invocation.Call(ctx, s, s.System().ListSealingKeys, &signalboxv1.ListSealingKeysRequest{},
		"list the sealing keys")
	if err != nil {
		return err
	}
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), found)
	}
	now := found.GetTime().AsTime()
	return invocation.Listing[*signalboxv1.SealingKey]{
		Thing: "sealing key", None: "nothing was sealed yet",
		Row: func(k *signalboxv1.SealingKey) output.Row {
			return output.Cells(
				"KEY", terminal.Line(k.GetId()), "STATE", keyState(k),
				"LAST USED", cmp.Or(past(k.GetLastTime(), now), "unknown"), "OPEN RUNS", fmt.Sprint(k.GetOpenRuns()),
				"EVENTS", fmt.Sprint(k.GetWaitingEvents()), "SETS", fmt.Sprint(k.GetIncompleteSets()),
				"STARTS", fmt.Sprint(k.GetScheduledStarts()), "WEBHOOKS", fmt.Sprint(k.GetWebhooks()),
				"+FIRST USED", output.Moment(k.GetFirstTime()), "FINGERPRINT", k.GetFingerprint(),
			)
		},
	}.Print(s, found.GetSealingKeys(), false)
}

func keyState(k *signalboxv1.SealingKey) string {
	needed := k.GetOpenRuns()+k.GetWaitingEvents()+k.GetIncompleteSets()+k.GetScheduledStarts()+k.GetWebhooks() > 0
	switch {
	case k.GetActive():
		return "active"
	case needed && !k.GetConfigured():
		return "missing"
	case needed:
		return "needed"
	}
	return "not needed"
}
