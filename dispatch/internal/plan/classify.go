package plan

import (
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

// classify sets the class of a dispatcher, the reason and its kind. The cases are in order of precedence.
func (x *index) classify(v *Verdict) {
	v.Class = dispatchtype.ClassUnknown
	switch {
	case v.Unread:
		v.Reason = "its memo cannot be read"
	case v.Belongs == wire.Foreign && v.Memo != nil:
		v.Reason = fmt.Sprintf("its memo names project %q and task queue %q, and its ID does not", v.Memo.Name.Project,
			v.Memo.Name.TaskQueue)
	case v.Belongs == wire.Foreign && v.Type != wire.WorkflowType:
		v.Reason = fmt.Sprintf("a workflow of type %q has its ID", v.Type)
	case v.Belongs == wire.Foreign:
		v.Reason = "the dispatcher that it belongs to cannot be determined"
	case x.empty:
		v.Reason = "the store of leases has no keys at all"
	case x.malformed[wire.OwnerKey(v.Name)]:
		v.Reason = "its owner's entry cannot be read"
	case v.Belongs == wire.OlderScheme:
		x.classifyOlder(v)
	case v.Entry != nil && v.Entry.State == lease.Held:
		v.Class, v.Reason = dispatchtype.ClassHealthy, fmt.Sprintf("its owner %q holds the lease", v.Entry.Holder)
		x.markSuperseded(v)
	case x.progress[v.Name] == nil:
		v.Reason = "the inbox has no row for it"
	case v.Belongs == wire.Mine && v.Memo.Epoch > x.progress[v.Name].Owner.Epoch:
		v.Reason = "the inbox has not allocated its epoch"
	default:
		x.classifyUnowned(v)
		if v.Class != dispatchtype.ClassStale {
			x.markSuperseded(v)
		}
	}
}

// adoptionTime is how long an owner may take to replace or adopt a dispatcher, and how far Temporal's list may lag.
const adoptionTime = 10 * time.Second

// markSuperseded marks a dispatcher whose claims are rejected, since a later epoch was allocated, and that no owner has
// terminated or adopted in time: the termination may be failing. It stays marked between two attempts, when no owner
// holds the lease, and at the begin of the next.
func (x *index) markSuperseded(v *Verdict) {
	row := x.progress[v.Name]
	if row == nil || v.Entry == nil || v.Memo != nil && v.Memo.Epoch >= row.Owner.Epoch {
		return
	}
	tried := v.Entry.Holder == row.Owner.Holder && v.Entry.ReadAt.Sub(v.Entry.AcquiredAt) >= adoptionTime
	triedBefore := v.Memo != nil && v.Memo.Epoch+1 < row.Owner.Epoch
	stands := row.Due && row.Lag >= adoptionTime && (row.SinceProgress < 0 || row.SinceProgress >= adoptionTime)
	if !tried && !triedBefore && !stands {
		return
	}
	v.Superseded = true
	who := fmt.Sprintf("its owner %q holds the lease", v.Entry.Holder)
	if v.Entry.State != lease.Held {
		who = fmt.Sprintf("its last owner %q resigned or lost the lease", row.Owner.Holder)
	}
	v.Reason = fmt.Sprintf("%s and has neither terminated nor adopted it: the claims of epochs before %d are rejected",
		who, row.Owner.Epoch)
}

// suspicion is a possible reason for being stale: its kind, and the time until it holds (0: now, never: not by
// waiting).
type suspicion struct {
	kind Kind
	in   time.Duration
	why  string
}

const never = time.Duration(-1)

// classifyUnowned classifies a dispatcher without a held lease.
func (x *index) classifyUnowned(v *Verdict) {
	row := x.progress[v.Name]
	v.SilentFor = x.quiet(v.Entry, row)
	moving := never
	if row.SinceProgress >= 0 && row.SinceProgress < x.rules.StaleAfter {
		moving = x.rules.StaleAfter - row.SinceProgress
	}
	var soonest time.Duration
	for _, s := range []suspicion{x.ownerGone(v), x.stuck(v, row), x.orphan(v), x.silentLegacy(v)} {
		switch {
		case s.in == never:
		case s.in > 0 || moving > 0:
			soonest = sooner(soonest, max(s.in, moving))
		case v.Answer == Answered:
			v.Reason = "it has no owner, and a worker answers for it"
			return
		case v.Answer == Unclear:
			v.Reason = "it has no owner, and it could not be asked"
			return
		default:
			v.Class, v.Kind, v.Reason = dispatchtype.ClassStale, s.kind, s.why
			return
		}
	}
	x.next = sooner(x.next, soonest)
	switch {
	case moving > 0:
		v.Reason = "it has no owner, and makes progress"
	case v.Entry == nil:
		v.Reason = "it has no owner's entry, and no evidence that one is missing"
	case v.Entry.State == lease.Resigned:
		v.Reason = fmt.Sprintf("%q resigned, and it has no new owner yet", v.Entry.Holder)
	default:
		v.Reason = fmt.Sprintf("the lease of %q expired, and it has no new owner yet", v.Entry.Holder)
	}
}

// ownerGone: the owner's lease has expired, and so has its heartbeat.
func (x *index) ownerGone(v *Verdict) suspicion {
	e := v.Entry
	if v.Belongs != wire.Mine || e == nil || e.State != lease.Expired {
		return suspicion{in: never}
	}
	in := x.untilDead(e.Holder)
	if in == never {
		return suspicion{in: never}
	}
	return suspicion{OwnerGone, max(in, x.rules.StaleAfter-e.Age(), 0),
		fmt.Sprintf("the lease and the heartbeat of %q expired", e.Holder)}
}

// stuck: work has been due for long, and there is no owner. The lag is the measure: an event that has just arrived at a
// dispatcher parked for days is no reason.
func (x *index) stuck(v *Verdict, row *inbox.Progress) suspicion {
	if v.Belongs != wire.Mine || !row.Due {
		return suspicion{in: never}
	}
	return suspicion{NoProgress, max(x.untilUnowned(v.Entry), x.rules.StaleAfter-row.Lag, 0),
		fmt.Sprintf("it has no owner, and work has been due for %s", row.Lag.Round(time.Second))}
}

// orphan: there was no owner for longer than entries are kept.
func (x *index) orphan(v *Verdict) suspicion {
	if v.Belongs != wire.Mine || v.Entry != nil {
		return suspicion{in: never}
	}
	return suspicion{Orphaned, max(x.rules.Retention-x.horizon, 0), "it has had no owner for longer than entries are kept"}
}

// silentLegacy: it should be replaced by the owner of its name, and there is none.
func (x *index) silentLegacy(v *Verdict) suspicion {
	if v.Belongs != wire.Legacy {
		return suspicion{in: never}
	}
	return suspicion{LegacyKind, x.untilUnowned(v.Entry), "it is of a release without owners, and its name has no owner"}
}

// classifyOlder classifies a dispatcher whose ID has an older scheme. Without one under the current ID, it may be the
// one that routes, so it is respected while its owner is alive. Once the current one has an owner, both route the same
// events, and the older one is terminated, alive or not: that costs nothing, since events wait in the inbox.
func (x *index) classifyOlder(v *Verdict) {
	held := v.Entry != nil && v.Entry.State == lease.Held
	switch {
	case held && x.current[v.Name]:
		v.Class, v.Kind = dispatchtype.ClassStale, OlderScheme
		v.Reason = fmt.Sprintf("%s has taken its place, and %q owns that", v.Name.DispatcherID(), v.Entry.Holder)
		return
	case held:
		v.Reason = fmt.Sprintf("%q is about to put another in its place", v.Entry.Holder)
		return
	case v.Memo == nil || v.Memo.Owner == "":
		v.Reason = "its memo has no owner, and nothing has taken its place yet"
		return
	}
	beat := x.workers[v.Memo.Owner]
	if beat != nil && beat.State == lease.Held {
		v.Class, v.Reason = dispatchtype.ClassHealthy,
			fmt.Sprintf("its owner %q is alive, and nothing has taken its place yet", v.Memo.Owner)
		return
	}
	if beat == nil {
		v.Reason = fmt.Sprintf("there is no heartbeat of its owner %q to judge by, and nothing has taken its place yet",
			v.Memo.Owner)
		return
	}
	in := x.untilDead(v.Memo.Owner)
	v.SilentFor = beat.Age()
	switch {
	case in > 0:
		x.next = sooner(x.next, in)
		v.Reason = fmt.Sprintf("the heartbeat of its owner %q expired a moment ago", v.Memo.Owner)
	case v.Answer == Answered:
		v.Reason = "its owner is gone, and a worker answers for it"
	case v.Answer == Unclear:
		v.Reason = "its owner is gone, and it could not be asked"
	default:
		v.Class, v.Kind, v.Reason = dispatchtype.ClassStale, OwnerGone,
			fmt.Sprintf("the heartbeat of its owner %q expired", v.Memo.Owner)
	}
}

// untilDead returns the time until a process counts as dead without a further heartbeat: 0 now, [never] for a live one.
func (x *index) untilDead(server string) time.Duration {
	beat := x.workers[server]
	switch {
	case x.malformed[wire.WorkerKey(server)]:
		return never
	case beat == nil:
		return max(x.rules.StaleAfter-x.horizon, 0)
	case beat.State == lease.Held:
		return never
	case beat.State == lease.Resigned:
		return 0
	default:
		return max(x.rules.StaleAfter-beat.Age(), 0)
	}
}

// untilUnowned returns the time until a name has certainly had no owner for the validity of a heartbeat.
func (x *index) untilUnowned(e *lease.Entry) time.Duration {
	if e == nil {
		return max(x.rules.StaleAfter-x.horizon, 0)
	}
	return max(x.rules.StaleAfter-e.Age(), 0)
}

// quiet returns the time since the last sign of the owner and the last progress, as far as known.
func (x *index) quiet(e *lease.Entry, row *inbox.Progress) time.Duration {
	quiet := x.horizon
	if e != nil {
		quiet = e.Age()
	}
	if row.SinceProgress >= 0 {
		quiet = min(quiet, row.SinceProgress)
	}
	return quiet
}
