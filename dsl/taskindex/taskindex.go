// Package taskindex indexes the tasks of a document by their JSON pointers.
//
//	tasks := taskindex.Of(doc)
//	task := tasks[step.Pointer] // nil where the document has no such task
package taskindex

import "github.com/signalbox-dev/signalbox/dsl"

// Of returns all tasks of a document, at any depth, by pointer.
func Of(doc *dsl.Document) map[string]*dsl.Task {
	tasks := map[string]*dsl.Task{}
	for _, t := range List(doc) {
		tasks[t.Pointer] = t
	}
	return tasks
}

// List returns all tasks of a document, at any depth, each task before the tasks inside it: those of the workflow in
// the order of the document, then those of its extensions.
func List(doc *dsl.Document) []*dsl.Task {
	all := appendTasks(nil, doc.Do)
	for _, e := range doc.Extensions {
		all = appendTasks(appendTasks(all, e.Before), e.After)
	}
	return all
}

func appendTasks(all, tasks []*dsl.Task) []*dsl.Task {
	for _, t := range tasks {
		all = append(all, t)
		switch b := t.Body.(type) {
		case *dsl.Do:
			all = appendTasks(all, b.Tasks)
		case *dsl.For:
			all = appendTasks(all, b.Tasks)
		case *dsl.Fork:
			all = appendTasks(all, b.Branches)
		case *dsl.Try:
			all = appendTasks(appendTasks(all, b.Tasks), b.Catch.Tasks)
		case *dsl.FunctionCall:
			all = appendTasks(all, b.Tasks())
		case *dsl.Listen:
			if b.Each != nil {
				all = appendTasks(all, b.Each.Tasks)
			}
		}
	}
	return all
}
