package wire

import (
	"errors"
	"fmt"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
)

// Memo is the memo of an open dispatcher.
type Memo struct {
	Name inbox.Name
	// Owner is the server ID of the owner, Epoch that of the ownership.
	Owner string
	Epoch int64
	// Interpreter is the version of its workflow code.
	Interpreter int
}

// Fields returns the memo's keys and values.
func (m Memo) Fields() map[string]any {
	return map[string]any{
		"project": m.Name.Project, "task_queue": m.Name.TaskQueue,
		"owner": m.Owner, "epoch": m.Epoch, "interpreter": m.Interpreter,
	}
}

// ReadMemo decodes a memo with the clients' converter; nil if it is not a dispatcher's memo. Missing fields are zero.
func ReadMemo(c converter.DataConverter, memo *commonpb.Memo) (*Memo, error) {
	fields := memo.GetFields()
	if fields["project"] == nil && fields["task_queue"] == nil {
		return nil, nil
	}
	var m Memo
	var violations []error
	for key, into := range map[string]any{
		"project": &m.Name.Project, "task_queue": &m.Name.TaskQueue,
		"owner": &m.Owner, "epoch": &m.Epoch, "interpreter": &m.Interpreter,
	} {
		if payload := fields[key]; payload != nil {
			if err := c.FromPayload(payload, into); err != nil {
				violations = append(violations, fmt.Errorf("memo field %q: %w", key, err))
			}
		}
	}
	return &m, errors.Join(violations...)
}

// Execution is an open workflow in Temporal.
type Execution struct {
	WorkflowID, RunID, Type, TaskQueue string
	// Memo is nil if there is no dispatcher's memo. Unread reports that there is one that could not be decoded.
	Memo   *Memo
	Unread bool
}

// Belonging is the relation of an open workflow to the dispatcher of a name.
type Belonging string

// The kinds of belonging.
const (
	// Mine: it is that dispatcher.
	Mine Belonging = "mine"
	// Foreign: a dispatcher of another project or queue, no dispatcher, or one that cannot be attributed. It is never
	// touched.
	Foreign Belonging = "foreign"
	// Legacy: it has the ID and the type but no memo, or one without an epoch, as early releases left it. It is replaced.
	Legacy Belonging = "legacy"
	// OlderScheme: a dispatcher of that name whose ID has an older scheme. It is terminated.
	OlderScheme Belonging = "older_scheme"
)

// Belongs returns the relation of an open workflow to the dispatcher of a name. legacyIDs are the patterns of IDs of
// older schemes, see [ValidatePattern].
func Belongs(name inbox.Name, e Execution, legacyIDs []string) Belonging {
	if e.Type != WorkflowType || e.Unread {
		return Foreign
	}
	exact := e.WorkflowID == name.DispatcherID()
	switch {
	case e.Memo != nil && e.Memo.Name != name:
		return Foreign
	case e.Memo != nil && e.Memo.Epoch > 0 && exact:
		return Mine
	case exact && e.Memo == nil && othersID(name, e):
		return Foreign
	case exact:
		return Legacy
	}
	for _, pattern := range legacyIDs {
		// The ID alone does not distinguish project "a" from "a-b"; its task queue does.
		if e.TaskQueue == name.TaskQueue && matches(expand(pattern, name), e.WorkflowID) {
			return OlderScheme
		}
	}
	return Foreign
}

// othersID reports whether the task queue of a workflow without a memo shows that its ID is another name's: since
// dashes also join, ("a-b", "c") and ("a", "b-c") have one ID.
func othersID(name inbox.Name, e Execution) bool {
	project, ok := strings.CutSuffix(strings.TrimPrefix(e.WorkflowID, inbox.DispatcherPrefix), "-"+e.TaskQueue)
	other := inbox.Name{Project: project, TaskQueue: e.TaskQueue}
	return ok && other != name && Validate(other) == nil
}

// ValidatePattern returns the violation of a pattern of older IDs. In a pattern, {project} and {task_queue} stand for
// the names, and * for any text; {project} is required, so that no other project's workflows match.
func ValidatePattern(pattern string) error {
	if !strings.Contains(pattern, "{project}") {
		return fmt.Errorf("pattern %q: {project} is missing", pattern)
	}
	if rest := expand(pattern, inbox.Name{}); strings.ContainsAny(rest, "{}") {
		return fmt.Errorf("pattern %q: the only placeholders are {project}, {task_queue} and *", pattern)
	}
	return nil
}

func expand(pattern string, name inbox.Name) string {
	return strings.NewReplacer("{project}", name.Project, "{task_queue}", name.TaskQueue).Replace(pattern)
}

// matches compares a text with a pattern in which * stands for any text.
func matches(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(s, part)
		if at < 0 {
			return false
		}
		s = s[at+len(part):]
	}
	return strings.HasSuffix(s, parts[len(parts)-1])
}
