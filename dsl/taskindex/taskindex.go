// Package taskindex indexes the tasks of a document by their JSON pointers.
//
//	tasks := taskindex.Of(doc)
//	task := tasks[step.Pointer] // nil where the document has no such task
package taskindex

import "github.com/signalbox-dev/signalbox/dsl"

// Of returns all tasks of a document, at any depth, by pointer.
func Of(doc *dsl.Document) map[string]*dsl.Task {
	tasks := map[string]*dsl.Task{}
	walk(doc.Do, tasks)
	return tasks
}

func walk(tasks []*dsl.Task, into map[string]*dsl.Task) {
	for _, t := range tasks {
		into[t.Pointer] = t
		switch b := t.Body.(type) {
		case *dsl.Do:
			walk(b.Tasks, into)
		case *dsl.For:
			walk(b.Tasks, into)
		case *dsl.Fork:
			walk(b.Branches, into)
		case *dsl.Try:
			walk(b.Tasks, into)
			walk(b.Catch.Tasks, into)
		case *dsl.Listen:
			if b.Each != nil {
				walk(b.Each.Tasks, into)
			}
		}
	}
}
