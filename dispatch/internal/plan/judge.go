package plan

import (
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/lease"
)

// judge fills in what is made of a dispatcher. The order of the cases is the order of the rules' strength.
func (w *world) judge(v *Verdict) {
	v.Class = Unknown
	switch {
	case v.Unread:
		v.Why = "its memo cannot be read"
	case v.Belongs == contract.NotMine && v.Memo != nil:
		v.Why = fmt.Sprintf("its memo names project %q and task queue %q, and its ID does not", v.Memo.Name.Project, v.Memo.Name.TaskQueue)
	case v.Belongs == contract.NotMine && v.Type != contract.WorkflowType:
		v.Why = fmt.Sprintf("a workflow of type %q has its ID", v.Type)
	case v.Belongs == contract.NotMine:
		v.Why = "it cannot be told whose it is"
	case w.empty:
		v.Why = "the store of leases has no keys at all"
	case w.malformed[contract.OwnerKey(v.Name)]:
		v.Why = "its owner's entry cannot be read"
	case v.Belongs == contract.OlderScheme:
		w.judgeOlder(v)
	case v.Entry != nil && v.Entry.State == lease.Held:
		v.Class, v.Why = Healthy, fmt.Sprintf("its owner %q holds the lease", v.Entry.Holder)
		w.judgeSuperseded(v)
	case w.progress[v.Name] == nil:
		v.Why = "the inbox does not know it"
	case v.Belongs == contract.Mine && v.Memo.Epoch > w.progress[v.Name].Owner.Epoch:
		v.Why = "its epoch is none that the inbox has handed out"
	default:
		w.judgeUnowned(v)
	}
}

// adoption is how long an owner may take to replace or adopt what it found, and what Temporal lists may be behind.
const adoption = 10 * time.Second

// judgeSuperseded notes a dispatcher whose owner has an epoch of its own, and has not ended or adopted it: the termination may be refused.
func (w *world) judgeSuperseded(v *Verdict) {
	row := w.progress[v.Name]
	if v.Belongs == contract.OlderScheme || row == nil || v.Entry.Holder != row.Owner.Holder || v.Entry.ReadAt.Sub(v.Entry.AcquiredAt) < adoption {
		return
	}
	if v.Memo == nil || v.Memo.Epoch < row.Owner.Epoch {
		v.Superseded = true
		v.Why = fmt.Sprintf("its owner %q holds the lease with epoch %d, and has not ended or adopted it: it may claim nothing", v.Entry.Holder, row.Owner.Epoch)
	}
}

// suspicion is what speaks against a dispatcher: the kind, and the time until it is so (0: now). Negative: it never will be by waiting.
type suspicion struct {
	kind Kind
	in   time.Duration
	why  string
}

const never = time.Duration(-1)

// judgeUnowned judges a dispatcher whose lease nobody holds.
func (w *world) judgeUnowned(v *Verdict) {
	row := w.progress[v.Name]
	v.Quiet = w.quiet(v.Entry, row)
	moving := never
	if row.SinceProgress >= 0 && row.SinceProgress < w.rules.StaleAfter {
		moving = w.rules.StaleAfter - row.SinceProgress
	}
	var soonest time.Duration
	for _, s := range []suspicion{w.gone(v), w.stuck(v, row), w.orphan(v), w.silentLegacy(v)} {
		switch {
		case s.in == never:
		case s.in > 0 || moving > 0:
			soonest = sooner(soonest, max(s.in, moving))
		case v.Answer == Answered:
			v.Why = "nobody owns it, and a worker answers for it"
			return
		case v.Answer == Unclear:
			v.Why = "nobody owns it, and it could not be asked"
			return
		default:
			v.Class, v.Kind, v.Why = Stale, s.kind, s.why
			return
		}
	}
	w.next = sooner(w.next, soonest)
	switch {
	case moving > 0:
		v.Why = "nobody owns it, and it moves"
	case v.Entry == nil:
		v.Why = "there is no entry of an owner, and no evidence that there should be"
	case v.Entry.State == lease.Resigned:
		v.Why = fmt.Sprintf("%q resigned, and nobody has taken it yet", v.Entry.Holder)
	default:
		v.Why = fmt.Sprintf("the lease of %q ran out, and nobody has taken it yet", v.Entry.Holder)
	}
}

// gone: the owner's lease ran out, and so did the owner's heartbeat.
func (w *world) gone(v *Verdict) suspicion {
	e := v.Entry
	if v.Belongs != contract.Mine || e == nil || e.State != lease.Expired {
		return suspicion{in: never}
	}
	in := w.ownerGone(e.Holder)
	if in == never {
		return suspicion{in: never}
	}
	return suspicion{OwnerGone, max(in, w.rules.StaleAfter-e.Age(), 0), fmt.Sprintf("the lease of %q ran out, and its heartbeat as well", e.Holder)}
}

// stuck: work has been due for long, and nobody is there to see to it. The lag says how long: what came a moment ago to one
// that slept for days is no reason.
func (w *world) stuck(v *Verdict, row *inbox.Progress) suspicion {
	if v.Belongs != contract.Mine || !row.Due {
		return suspicion{in: never}
	}
	return suspicion{NoProgress, max(w.unowned(v.Entry), w.rules.StaleAfter-row.Lag, 0),
		fmt.Sprintf("nobody owns it, and work has been due for %s", row.Lag.Round(time.Second))}
}

// orphan: nobody has owned it for longer than entries are kept.
func (w *world) orphan(v *Verdict) suspicion {
	if v.Belongs != contract.Mine || v.Entry != nil {
		return suspicion{in: never}
	}
	return suspicion{Orphaned, max(w.rules.Retention-w.horizon, 0), "nobody has owned it for longer than entries are kept"}
}

// silentLegacy: it is to be replaced by whoever owns its name, and nobody does.
func (w *world) silentLegacy(v *Verdict) suspicion {
	if v.Belongs != contract.Legacy {
		return suspicion{in: never}
	}
	return suspicion{LegacyKind, w.unowned(v.Entry), "it is of a release without owners, and nobody owns its name"}
}

// judgeOlder judges a dispatcher whose ID was made by an older rule. While ours is not there it may be the one that routes, so
// whoever keeps it alive is respected; once ours has an owner it routes what another routes as well, and goes, alive or not:
// that costs nothing, since events wait in the inbox.
func (w *world) judgeOlder(v *Verdict) {
	held := v.Entry != nil && v.Entry.State == lease.Held
	switch {
	case held && w.current[v.Name]:
		v.Class, v.Kind = Stale, OlderScheme
		v.Why = fmt.Sprintf("%s has taken its place, and %q owns that", v.Name.DispatcherID(), v.Entry.Holder)
		return
	case held:
		v.Why = fmt.Sprintf("%q is about to put another in its place", v.Entry.Holder)
		return
	case v.Memo == nil || v.Memo.Owner == "":
		v.Why = "it does not say who owns it, and nothing has taken its place yet"
		return
	}
	beat := w.workers[v.Memo.Owner]
	if beat != nil && beat.State == lease.Held {
		v.Class, v.Why = Healthy, fmt.Sprintf("its owner %q is alive, and nothing has taken its place yet", v.Memo.Owner)
		return
	}
	if beat == nil {
		v.Why = fmt.Sprintf("there is no heartbeat of its owner %q to judge by, and nothing has taken its place yet", v.Memo.Owner)
		return
	}
	in := w.ownerGone(v.Memo.Owner)
	v.Quiet = beat.Age()
	switch {
	case in > 0:
		w.next = sooner(w.next, in)
		v.Why = fmt.Sprintf("its owner %q has been quiet for a moment", v.Memo.Owner)
	case v.Answer == Answered:
		v.Why = "its owner is gone, and a worker answers for it"
	case v.Answer == Unclear:
		v.Why = "its owner is gone, and it could not be asked"
	default:
		v.Class, v.Kind, v.Why = Stale, OwnerGone, fmt.Sprintf("the heartbeat of its owner %q ran out", v.Memo.Owner)
	}
}

// ownerGone tells in what time a process counts as gone if it gives no more signs of life: 0 now, [never] for one that is alive.
func (w *world) ownerGone(server string) time.Duration {
	beat := w.workers[server]
	switch {
	case w.malformed[contract.WorkerKey(server)]:
		return never
	case beat == nil:
		return max(w.rules.StaleAfter-w.horizon, 0)
	case beat.State == lease.Held:
		return never
	case beat.State == lease.Resigned:
		return 0
	default:
		return max(w.rules.StaleAfter-beat.Age(), 0)
	}
}

// unowned tells in what time it is certain that nobody has owned a name for as long as a sign of life counts.
func (w *world) unowned(e *lease.Entry) time.Duration {
	if e == nil {
		return max(w.rules.StaleAfter-w.horizon, 0)
	}
	return max(w.rules.StaleAfter-e.Age(), 0)
}

// quiet is for how long there has been neither a sign of the owner nor progress, as far as that is known.
func (w *world) quiet(e *lease.Entry, row *inbox.Progress) time.Duration {
	quiet := w.horizon
	if e != nil {
		quiet = e.Age()
	}
	if row.SinceProgress >= 0 {
		quiet = min(quiet, row.SinceProgress)
	}
	return quiet
}
