package supervisor

import (
	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
)

// result is the report of a cycle that is in progress.
type result struct {
	dispatchtype.Report

	// unconfirmed has the indexes of the items that the second snapshot found not stale.
	unconfirmed map[int]bool
}

// report returns the report of a plan before any action.
func report(p plan.Plan) result {
	r := result{Report: dispatchtype.Report{Dispatchers: len(p.Verdicts)}, unconfirmed: map[int]bool{}}
	for i := range p.Verdicts {
		switch p.Verdicts[i].Class {
		case dispatchtype.ClassHealthy:
			r.Healthy++
		case dispatchtype.ClassStale:
			r.Stale++
		default:
			r.Unknown++
		}
	}
	for i := range p.Terminate {
		r.Items = append(r.Items, itemOf(dispatchtype.ActionTerminate, &p.Terminate[i]))
	}
	for i := range p.TerminateLater {
		r.Items = append(r.Items, itemOf(dispatchtype.ActionPostpone, &p.TerminateLater[i]))
	}
	for _, d := range p.DeleteLater {
		r.Items = append(r.Items, itemOfEntry(dispatchtype.ActionPostpone, d))
	}
	for _, d := range p.Delete {
		r.Items = append(r.Items, itemOfEntry(dispatchtype.ActionDeleteEntry, d))
	}
	for _, a := range p.Alerts {
		r.Items = append(r.Items, dispatchtype.ReportItem{
			Action: dispatchtype.ActionAlert, Kind: string(a.Kind), Name: inbox.Name{Project: a.Project}, WorkflowID: a.Subject,
			Reason: a.Text,
		})
	}
	return r
}

func itemOfEntry(action dispatchtype.Action, d plan.Deletion) dispatchtype.ReportItem {
	return dispatchtype.ReportItem{
		Action: action, Kind: string(plan.OwnerGone), Name: d.Name, Owner: inbox.Owner{Holder: d.Holder},
		Reason: "its owner and its dispatcher are gone",
	}
}

func itemOf(action dispatchtype.Action, v *plan.Verdict) dispatchtype.ReportItem {
	return dispatchtype.ReportItem{
		Action: action, Kind: string(v.Kind), Name: v.Name, WorkflowID: v.WorkflowID, RunID: v.RunID, Owner: ownerOf(v),
		Reason: v.Reason,
	}
}

// ownerOf returns the owner of a dispatcher: the one in its memo, or else the holder of its entry.
func ownerOf(v *plan.Verdict) inbox.Owner {
	switch {
	case v.Memo != nil:
		return inbox.Owner{Epoch: v.Memo.Epoch, Holder: v.Memo.Owner}
	case v.Entry != nil && v.Kind != plan.OlderScheme:
		return inbox.Owner{Holder: v.Entry.Holder}
	default:
		return inbox.Owner{}
	}
}

// confirm marks the items that the second snapshot does not confirm.
func (r *result) confirm(p plan.Plan) {
	sure := map[*dispatchtype.ReportItem]bool{}
	for i := range p.Terminate {
		sure[r.find(dispatchtype.ActionTerminate, p.Terminate[i].Name, p.Terminate[i].RunID)] = true
	}
	for _, d := range p.Delete {
		sure[r.find(dispatchtype.ActionDeleteEntry, d.Name, "")] = true
	}
	whys := map[string]string{}
	for i := range p.Verdicts {
		whys[p.Verdicts[i].RunID] = p.Verdicts[i].Reason
	}
	for i := range r.Items {
		it := &r.Items[i]
		if sure[it] || (it.Action != dispatchtype.ActionTerminate && it.Action != dispatchtype.ActionDeleteEntry) {
			continue
		}
		it.Error, r.unconfirmed[i] = "not confirmed by a second reading", true
		if why := whys[it.RunID]; why != "" {
			it.Error += ": " + why
		}
	}
}

// find returns the item of a termination or a deletion.
func (r *result) find(action dispatchtype.Action, name inbox.Name, runID string) *dispatchtype.ReportItem {
	for i := range r.Items {
		if it := &r.Items[i]; it.Action == action && it.Name == name && it.RunID == runID {
			return it
		}
	}
	return nil
}
