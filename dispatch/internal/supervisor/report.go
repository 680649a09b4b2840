package supervisor

import (
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
)

// Action is the kind of an item.
type Action string

// The actions.
const (
	Terminate   Action = "terminate"    // terminate a stale dispatcher
	Postpone    Action = "postpone"     // leave it to the next cycle, which has room
	DeleteEntry Action = "delete_entry" // delete an expired entry
	Alert       Action = "alert"        // report it to operators
)

// Item is one action that a cycle took, or would take, or an alert.
type Item struct {
	Action Action
	// Kind is the reason in one word.
	Kind              string
	Name              inbox.Name
	WorkflowID, RunID string
	// Owner is the last known owner.
	Owner inbox.Owner
	// Reason is a text for operators.
	Reason string
	// Applied reports that the action was taken. Error is why it was not; it is empty if another process was faster.
	Applied bool
	Error   string

	// unconfirmed: the second reading found it not stale.
	unconfirmed bool
}

// Report is the result of a cycle.
type Report struct {
	// Items are terminations, postponed items, deletions and alerts, in this order.
	Items []Item
	// Dispatchers counts the open dispatchers. Healthy, Stale and Unknown count them by class.
	Dispatchers, Healthy, Stale, Unknown int
	Duration                             time.Duration
	DryRun                               bool
}

// report returns the report of a plan before any action.
func report(p plan.Plan) Report {
	r := Report{Dispatchers: len(p.Verdicts)}
	for i := range p.Verdicts {
		switch p.Verdicts[i].Class {
		case plan.Healthy:
			r.Healthy++
		case plan.Stale:
			r.Stale++
		default:
			r.Unknown++
		}
	}
	for i := range p.Terminate {
		r.Items = append(r.Items, itemOf(Terminate, &p.Terminate[i]))
	}
	for i := range p.Postponed {
		r.Items = append(r.Items, itemOf(Postpone, &p.Postponed[i]))
	}
	for _, d := range p.Later {
		r.Items = append(r.Items, itemOfEntry(Postpone, d))
	}
	for _, d := range p.Delete {
		r.Items = append(r.Items, itemOfEntry(DeleteEntry, d))
	}
	for _, a := range p.Alerts {
		r.Items = append(r.Items, Item{Action: Alert, Kind: string(a.Trouble), Name: inbox.Name{Project: a.Project}, WorkflowID: a.Subject, Reason: a.Text})
	}
	return r
}

func itemOfEntry(action Action, d plan.Deletion) Item {
	return Item{Action: action, Kind: string(plan.OwnerGone), Name: d.Name, Owner: inbox.Owner{Holder: d.Holder}, Reason: "its owner and its dispatcher are gone"}
}

func itemOf(action Action, v *plan.Verdict) Item {
	return Item{
		Action: action, Kind: string(v.Kind), Name: v.Name, WorkflowID: v.WorkflowID, RunID: v.RunID, Owner: ownerOf(v), Reason: v.Reason,
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

// confirm marks the items that the second reading does not confirm.
func (r *Report) confirm(p plan.Plan) {
	sure := map[*Item]bool{}
	for i := range p.Terminate {
		sure[r.find(Terminate, p.Terminate[i].Name, p.Terminate[i].RunID)] = true
	}
	for _, d := range p.Delete {
		sure[r.find(DeleteEntry, d.Name, "")] = true
	}
	whys := map[string]string{}
	for i := range p.Verdicts {
		whys[p.Verdicts[i].RunID] = p.Verdicts[i].Reason
	}
	for i := range r.Items {
		it := &r.Items[i]
		if sure[it] || (it.Action != Terminate && it.Action != DeleteEntry) {
			continue
		}
		it.Error, it.unconfirmed = "not confirmed by a second reading", true
		if why := whys[it.RunID]; why != "" {
			it.Error += ": " + why
		}
	}
}

// find returns the item of a termination or a deletion.
func (r *Report) find(action Action, name inbox.Name, runID string) *Item {
	for i := range r.Items {
		if it := &r.Items[i]; it.Action == action && it.Name == name && it.RunID == runID {
			return it
		}
	}
	return nil
}
