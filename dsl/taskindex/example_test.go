package taskindex_test

import (
	"fmt"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/taskindex"
)

// Tasks are found at any depth.
func ExampleOf() {
	doc, _ := dsl.Parse([]byte(`
document: {dsl: 1.0.3, namespace: shop, name: order, version: 1.0.0}
do:
  - outer: {do: [{inner: {set: {ok: true}}}]}
`))
	tasks := taskindex.Of(doc)
	fmt.Println(len(tasks), tasks["/do/0/outer/do/0/inner"].Name)
	// Output: 2 inner
}
