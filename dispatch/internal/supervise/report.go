package supervise

import (
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
)

// Action is what is done about something.
type Action string

// The actions.
const (
	Terminate   Action = "terminate"    // a stale dispatcher is terminated
	Postpone    Action = "postpone"     // it is one too many for this cycle
	DeleteEntry Action = "delete_entry" // an entry that has run out is removed
	Alert       Action = "alert"        // it is told to people
)

// Item is one thing that a cycle does, or would do.
type Item struct {
	Action Action
	// Kind is why, in one word.
	Kind              string
	Name              inbox.Name
	WorkflowID, RunID string
	// Owner is who owned it, as far as is known.
	Owner inbox.Owner
	// Reason is for people.
	Reason string
	// Applied tells that it was done. Error is why it was not, empty where somebody else was faster.
	Applied bool
	Error   string

	// unconfirmed: a second reading found that it is stale no more.
	unconfirmed bool
}

// Report is what a cycle found and did.
type Report struct {
	// Items are terminations, postponed ones, deletions and alerts, in this order.
	Items []Item
	// Dispatchers counts those that are open, the others what is made of them.
	Dispatchers, Healthy, Stale, Unknown int
	Took                                 time.Duration
	DryRun                               bool
}

// report tells of a plan of which nothing is done yet.
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
		Action: action, Kind: string(v.Kind), Name: v.Name, WorkflowID: v.WorkflowID, RunID: v.RunID, Owner: ownerOf(v), Reason: v.Why,
	}
}

// ownerOf is who owned a dispatcher: who it says itself, or else whose entry there is.
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

// confirm notes what a second reading does not confirm.
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
		whys[p.Verdicts[i].RunID] = p.Verdicts[i].Why
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
