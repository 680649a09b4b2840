package runcmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// NewView returns the noun "view" with its verbs.
func NewView(s *invocation.Invocation) *cobra.Command {
	noun := invocation.Noun("view", "Save filters of the list of runs under a name", "")
	noun.AddCommand(viewListCommand(s), saveCommand(s), deleteCommand(s))
	return noun
}

func viewListCommand(s *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List your views and the shared ones of the project",
		Example: `  signalbox view list`,
		Args:    invocation.Args(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return viewList(cmd.Context(), s) },
	}
	s.BindClient(cmd)
	return cmd
}

func viewList(ctx context.Context, s *invocation.Invocation) error {
	response, err := invocation.Call(ctx, s, s.Views().ListViews, &signalboxv1.ListViewsRequest{Project: s.Project()},
		"list views")
	if err != nil {
		return err
	}
	return invocation.Listing[*signalboxv1.View]{
		Thing: "view", None: "no views in project " + s.Project(),
		Row: func(v *signalboxv1.View) output.Row {
			return output.Cells(
				"NAME", v.GetName(), "SHARED", yes(v.GetShared()), "OWNER", v.GetOwner(),
				"FILTER", filterLine(v.GetQuery()), "REVISION", fmt.Sprint(v.GetRevision()),
				"AGE", s.Age(v.GetUpdateTime()), "+ID", v.GetId(), "+CHANGED BY", v.GetUpdater(),
				"+COLUMNS", strings.Join(v.GetQuery().GetColumns(), ","),
			)
		},
	}.Print(s, response.GetViews(), false)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// filterLine is the query in the words of the flags.
func filterLine(q *signalboxv1.ViewQuery) string {
	line := FilterLine(q.GetFilter(), periodText(q.GetPeriod()), periodText(q.GetEndedPeriod()))
	if q.GetOrder() != "" && q.GetOrder() != "newest" {
		line += ", " + q.GetOrder() + " first"
	}
	return line
}

// periodText writes a period; empty for none.
func periodText(period *durationpb.Duration) string {
	if period == nil {
		return ""
	}
	return output.Span(period.AsDuration())
}

type saveFlags struct {
	Selection

	order, name string
	columns     []string
	shared      bool
	revision    int64
}

func saveCommand(s *invocation.Invocation) *cobra.Command {
	var flags saveFlags
	cmd := &cobra.Command{
		Use:   "save NAME",
		Short: "Save a filter of the list of runs",
		Long: `Save a filter of the list of runs under a name: the flags of "run list", the order and the columns of the web UI. A --since that is a
length of time ("24h") counts back from the time at which the view is read.

Without --revision the command creates a view. With --revision it replaces the content of the view with this name or ID, and with --name
its name: the filter, order and columns are those of the flags. It fails if the view has another revision by then; "view list" shows them.`,
		Example: `  signalbox view save failed-orders --status failed --workflow shop/order --since 24h
  signalbox view save failed-orders --status failed,timed_out --workflow shop/order --revision 1 --shared
  signalbox run list --view failed-orders`,
		Args: invocation.Args(1, 1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error { return viewSave(cmd, s, args[0], flags) },
	}
	flags.Bind(s, cmd)
	cmd.Flags().StringVar(&flags.order, "order", "",
		"`order` of the list: "+strings.Join(orders(), " or ")+" first")
	cmd.Flags().StringSliceVar(&flags.columns, "columns", nil,
		"`columns` of the list in the web UI, separated by commas; the reader's own choice when not given")
	cmd.Flags().BoolVar(&flags.shared, "shared", false, "show the view to every caller with a role in the project")
	cmd.Flags().Int64Var(&flags.revision, "revision", 0, "`revision` of the view to replace, as you have read it")
	cmd.Flags().StringVar(&flags.name, "name", "", "new `name` of the view to replace")
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("order",
		cobra.FixedCompletions(orders(), cobra.ShellCompDirectiveNoFileComp))
	s.BindClient(cmd)
	return cmd
}

func viewSave(cmd *cobra.Command, s *invocation.Invocation, name string, flags saveFlags) error {
	query, err := flags.query(s)
	if err != nil {
		return err
	}
	request := &signalboxv1.SaveViewRequest{Project: s.Project(), Name: name, Query: query, Shared: flags.shared}
	if cmd.Flags().Changed("revision") {
		now, err := findView(cmd.Context(), s, name)
		if err != nil {
			return err
		}
		request.Id, request.Name, request.Revision = now.GetId(), now.GetName(), flags.revision
	}
	if flags.name != "" {
		if request.GetId() == "" {
			return exit.Usagef("--name: it renames an existing view; give its --revision, too")
		}
		request.Name = flags.name
	}
	response, err := invocation.Call(cmd.Context(), s, s.Views().SaveView, request, "save view %q", name)
	if err != nil {
		return err
	}
	v := response.GetView()
	return s.Card(v, []output.Field{
		{Name: "view", Value: v.GetName()}, {Name: "id", Value: v.GetId()}, {Name: "shared", Value: yes(v.GetShared())},
		{Name: "owner", Value: v.GetOwner()},
		{Name: "filter", Value: filterLine(v.GetQuery())},
		{Name: "columns", Value: strings.Join(v.GetQuery().GetColumns(), ",")},
		{Name: "revision", Value: fmt.Sprint(v.GetRevision())},
	})
}

func (f *saveFlags) query(s *invocation.Invocation) (*signalboxv1.ViewQuery, error) {
	filter, err := f.Filter(s)
	if err != nil {
		return nil, err
	}
	if f.order != "" {
		if _, err := invocation.Words("order", []string{f.order}, orders()); err != nil {
			return nil, err
		}
	}
	q := &signalboxv1.ViewQuery{Filter: filter, Order: f.order, Columns: f.columns}
	created, ended := f.Lengths()
	if created != 0 {
		filter.Since, q.Period = nil, durationpb.New(created)
	}
	if ended != 0 {
		filter.EndedSince, q.EndedPeriod = nil, durationpb.New(ended)
	}
	return q, nil
}

func deleteCommand(s *invocation.Invocation) *cobra.Command {
	var revision int64
	var confirm invocation.Confirmation
	cmd := &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a view, by its name or ID",
		Example: `  signalbox view delete failed-orders --yes`,
		Args:    invocation.Args(1, 1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			now, err := findView(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			request := &signalboxv1.DeleteViewRequest{Project: s.Project(), Id: now.GetId(), Revision: now.GetRevision()}
			if cmd.Flags().Changed("revision") {
				request.Revision = revision
			}
			shared := ""
			if now.GetShared() {
				shared = "shared "
			}
			if err := confirm.Ask(s, fmt.Sprintf("Delete the %sview %q?", shared, now.GetName())); err != nil {
				return err
			}
			if _, err := invocation.Call(cmd.Context(), s, s.Views().DeleteView, request, "delete view %q",
				args[0]); err != nil {
				return err
			}
			s.Note("view %q is deleted", now.GetName())
			return nil
		},
	}
	cmd.Flags().Int64Var(&revision, "revision", 0,
		"`revision` of the view as you have read it; the present one when not given")
	confirm.Bind(cmd)
	s.BindClient(cmd)
	return cmd
}
