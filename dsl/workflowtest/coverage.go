package workflowtest

import (
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/taskindex"
)

// Coverage counts how often the runs of cases entered the tasks of a document and took their branches.
type Coverage struct {
	Parts []Covered
	index map[branchKey]int
}

// Covered is a task, or one branch of a task.
type Covered struct {
	Pointer, Task string
	// Branch is empty for the task itself, the name of a case of a switch, "otherwise" if none of its cases holds, "catch"
	// for the catch of a try, and "if true" or "if false" for a task with a condition.
	Branch string
	Count  int
	Pos    dsl.Pos
}

// The names of branches that the document does not name.
const (
	branchOtherwise = "otherwise"
	branchIfTrue    = "if true"
	branchIfFalse   = "if false"
)

type branchKey struct{ pointer, branch string }

func newCoverage(doc *dsl.Document) *Coverage {
	c := &Coverage{index: map[branchKey]int{}}
	for _, t := range taskindex.List(doc) {
		c.add(t, "")
		if t.If != nil {
			c.add(t, branchIfTrue)
			c.add(t, branchIfFalse)
		}
		switch b := t.Body.(type) {
		case *dsl.Switch:
			fallback := false
			for _, one := range b.Cases {
				c.add(t, one.Name)
				fallback = fallback || one.When == nil
			}
			if !fallback {
				c.add(t, branchOtherwise)
			}
		case *dsl.Try:
			c.add(t, interp.BranchCatch)
		}
	}
	return c
}

func (c *Coverage) add(t *dsl.Task, branch string) {
	c.index[branchKey{t.Pointer, branch}] = len(c.Parts)
	c.Parts = append(c.Parts, Covered{Pointer: t.Pointer, Task: t.Name, Branch: branch, Pos: t.Pos})
}

func (c *Coverage) count(pointer, branch string) {
	if i, known := c.index[branchKey{pointer, branch}]; known {
		c.Parts[i].Count++
	}
}

// position returns the position of a task.
func (c *Coverage) position(pointer string) dsl.Pos {
	if i, known := c.index[branchKey{pointer, ""}]; known {
		return c.Parts[i].Pos
	}
	return dsl.Pos{}
}

// branch counts a branch that the machine reports.
func (c *Coverage) branch(task *dsl.Task, branch string) {
	if branch == "" {
		branch = branchOtherwise
	}
	c.count(task.Pointer, branch)
}

// entered counts the entry into a task.
func (c *Coverage) entered(s *Step) {
	if s.Status == interp.StatusSkipped {
		c.count(s.Pointer, branchIfFalse)
		return
	}
	c.count(s.Pointer, "")
	c.count(s.Pointer, branchIfTrue)
}

// merge adds the counts of another coverage of the same document.
func (c *Coverage) merge(other *Coverage) {
	for i := range c.Parts {
		c.Parts[i].Count += other.Parts[i].Count
	}
}

// Percent returns the percentage of tasks and branches that were taken at least once, rounded down.
func (c *Coverage) Percent() int {
	if len(c.Parts) == 0 {
		return 100
	}
	return (len(c.Parts) - len(c.Missing())) * 100 / len(c.Parts)
}

// Missing returns the tasks and branches that no case took.
func (c *Coverage) Missing() []Covered {
	var missing []Covered
	for _, p := range c.Parts {
		if p.Count == 0 {
			missing = append(missing, p)
		}
	}
	return missing
}
