package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

// Make returns the plan of a snapshot.
func Make(snapshot Snapshot, rules Rules) Plan {
	x := newIndex(snapshot, rules)
	p := Plan{Verdicts: make([]Verdict, 0, len(snapshot.Open)), Duplicates: map[string]int{}}
	for i := range snapshot.Open {
		p.Verdicts = append(p.Verdicts, x.attribute(snapshot.Open[i]))
	}
	slices.SortStableFunc(p.Verdicts, func(a, b Verdict) int {
		return cmp.Or(cmp.Compare(a.WorkflowID, b.WorkflowID), cmp.Compare(a.RunID, b.RunID))
	})
	x.count(p.Verdicts)
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		x.classify(v)
		if v.Class == dispatchtype.ClassStale {
			p.Terminate = append(p.Terminate, *v)
		}
	}
	slices.SortStableFunc(p.Terminate, func(a, b Verdict) int { return cmp.Compare(b.SilentFor, a.SilentFor) })
	p.Delete = x.deadEntries()
	if len(p.Delete) > rules.MaxActions {
		p.Delete, p.DeleteLater = p.Delete[:rules.MaxActions:rules.MaxActions], p.Delete[rules.MaxActions:]
	}
	p.alert(x)
	if len(p.Terminate) > rules.MaxActions {
		p.Terminate, p.TerminateLater = p.Terminate[:rules.MaxActions:rules.MaxActions], p.Terminate[rules.MaxActions:]
		p.Alerts = append(p.Alerts, Alert{
			Kind: TooManyStale, Subject: fmt.Sprintf("%d dispatchers", len(p.Terminate)+len(p.TerminateLater)),
			Text: fmt.Sprintf("are stale at once; %d are terminated now, %d in the next cycles", len(p.Terminate),
				len(p.TerminateLater)),
		})
	}
	p.Next = x.next
	return p
}

// index is a snapshot, indexed.
type index struct {
	rules     Rules
	owners    map[inbox.Name]*lease.Entry
	workers   map[string]*lease.Entry
	progress  map[inbox.Name]*inbox.Progress
	malformed map[string]bool
	// names are the names that are certain. byID and byQueue index them by workflow ID and task queue.
	names   map[inbox.Name]bool
	byID    map[string][]inbox.Name
	byQueue map[string][]inbox.Name
	// horizon is how far back the store's data certainly reaches. empty is set if it has no keys at all.
	horizon time.Duration
	empty   bool
	// open are the workflow IDs of each name's open dispatchers. current has the names with one under the current ID.
	open    map[inbox.Name][]string
	current map[inbox.Name]bool
	next    time.Duration
}

func newIndex(r Snapshot, rules Rules) *index {
	x := &index{
		rules: rules, owners: map[inbox.Name]*lease.Entry{}, workers: map[string]*lease.Entry{},
		progress:  map[inbox.Name]*inbox.Progress{},
		malformed: map[string]bool{}, names: map[inbox.Name]bool{}, byID: map[string][]inbox.Name{},
		byQueue: map[string][]inbox.Name{},
		open:    map[inbox.Name][]string{}, current: map[inbox.Name]bool{}, empty: len(r.Entries)+len(r.Malformed) == 0,
	}
	for i := range r.Entries {
		e := &r.Entries[i]
		x.horizon = max(x.horizon, e.ReadAt.Sub(e.AcquiredAt))
		if name, ok := wire.NameOf(e.Key); ok && e.Key == wire.OwnerKey(name) {
			x.owners[name] = newest(x.owners[name], e)
			x.addName(name)
		} else if server, ok := wire.ServerOf(e.Key); ok {
			x.workers[server] = newest(x.workers[server], e)
		}
	}
	for _, key := range r.Malformed {
		x.malformed[key] = true
	}
	for i := range r.Progress {
		x.progress[r.Progress[i].Name] = &r.Progress[i]
		x.addName(r.Progress[i].Name)
	}
	for _, o := range r.Open {
		if o.Memo != nil && !o.Unread && o.WorkflowID == o.Memo.Name.DispatcherID() {
			x.addName(o.Memo.Name)
		}
	}
	return x
}

// newest returns the entry with the higher revision: a store may list an entry more than once.
func newest(a, b *lease.Entry) *lease.Entry {
	if a != nil && a.Revision > b.Revision {
		return a
	}
	return b
}

func (x *index) addName(name inbox.Name) {
	if x.names[name] {
		return
	}
	x.names[name] = true
	id := name.DispatcherID()
	x.byID[id] = append(x.byID[id], name)
	x.byQueue[name.TaskQueue] = append(x.byQueue[name.TaskQueue], name)
}

// attribute finds the dispatcher that a workflow is. One that fits several names is foreign.
func (x *index) attribute(o Open) Verdict {
	v := Verdict{Open: o, Belongs: wire.Foreign}
	candidates := slices.Concat(x.byID[o.WorkflowID], x.byQueue[o.TaskQueue])
	if o.Memo != nil {
		candidates = []inbox.Name{o.Memo.Name}
	}
	fits := map[inbox.Name]wire.Belonging{}
	for _, name := range candidates {
		if b := wire.Belongs(name, o.Execution, x.rules.LegacyIDs); b != wire.Foreign {
			fits[name] = b
		}
	}
	if len(fits) == 1 {
		for name, b := range fits {
			v.Name, v.Belongs, v.Entry = name, b, x.owners[name]
		}
	}
	return v
}

// count records which names have open dispatchers.
func (x *index) count(verdicts []Verdict) {
	for i := range verdicts {
		v := &verdicts[i]
		if v.Belongs == wire.Foreign {
			continue
		}
		// Two runs of one ID are an outdated list: one of them is closed.
		if ids := x.open[v.Name]; !slices.Contains(ids, v.WorkflowID) {
			x.open[v.Name] = append(ids, v.WorkflowID)
		}
		x.current[v.Name] = x.current[v.Name] || v.Belongs == wire.Mine
	}
}

// deadEntries returns the expired entries of dead owners without an open dispatcher, as a crash between a termination
// and the deletion leaves them. A resigned entry informs the next owner; it goes with its retention.
func (x *index) deadEntries() []Deletion {
	var out []Deletion
	for name, e := range x.owners {
		if e.State == lease.Expired && e.Age() >= x.rules.StaleAfter && len(x.open[name]) == 0 && x.untilDead(e.Holder) == 0 {
			out = append(out, deletion(name, e))
		}
	}
	slices.SortFunc(out, func(a, b Deletion) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

func deletion(name inbox.Name, e *lease.Entry) Deletion {
	return Deletion{Name: name, Key: e.Key, Holder: e.Holder, Token: e.Token, Revision: e.Revision}
}

// Cleanup returns the entry to delete after the termination of a stale dispatcher, and whether there is one.
func (v Verdict) Cleanup() (Deletion, bool) {
	if v.Entry == nil || v.Entry.State == lease.Held || v.Belongs == wire.OlderScheme {
		return Deletion{}, false
	}
	return deletion(v.Name, v.Entry), true
}

// alert adds the alerts.
func (p *Plan) alert(x *index) {
	if x.empty && len(p.Verdicts) > 0 {
		p.Alerts = append(p.Alerts, Alert{
			Kind: NoKeys, Subject: fmt.Sprintf("%d dispatchers", len(p.Verdicts)), Text: "are open and the lease store is " +
				"empty: no action is taken",
		})
	}
	for _, key := range slices.Sorted(maps.Keys(x.malformed)) {
		name, _ := wire.NameOf(key)
		p.Alerts = append(p.Alerts,
			Alert{Kind: Malformed, Project: name.Project, Subject: key, Text: "cannot be read; the next owner replaces it"})
	}
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		if v.Belongs == wire.Foreign {
			p.Alerts = append(p.Alerts, Alert{Kind: Foreign, Subject: v.WorkflowID, Text: v.Reason})
			continue
		}
		if row := x.progress[v.Name]; v.Memo != nil && v.Belongs == wire.Mine && row != nil &&
			v.Memo.Epoch > row.Owner.Epoch {
			p.Alerts = append(p.Alerts, Alert{
				Kind: Ahead, Project: v.Name.Project, Subject: v.WorkflowID,
				Text: fmt.Sprintf("has epoch %d, and the inbox has allocated only %d: it lost its data, or the dispatcher "+
					"belongs to another installation", v.Memo.Epoch, row.Owner.Epoch),
			})
		}
	}
	names := slices.SortedFunc(maps.Keys(x.open), func(a, b inbox.Name) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.TaskQueue, b.TaskQueue))
	})
	for _, name := range names {
		ids := x.open[name]
		p.Duplicates[name.Project] += len(ids) - 1
		if len(ids) > 1 {
			p.Alerts = append(p.Alerts, Alert{
				Kind: Duplicate, Project: name.Project, Subject: name.DispatcherID(),
				Text: fmt.Sprintf("is open more than once, as %q", ids),
			})
		}
	}
}

// sooner returns the shorter of two waiting times, of which 0 means none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
