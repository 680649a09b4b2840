package workflowtest_test

import (
	"context"
	"fmt"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/workflowtest"
)

const patient = `
document: {dsl: '1.0.3', namespace: shop, name: patient, version: '1.0.0'}
do:
  - pause: {wait: {days: 30}}
  - stock: {call: http, with: {method: get, endpoint: 'https://shop.example/stock/{id}'}}
`

// A case is built in Go. In a test, Run reports the mismatches to it.
func ExampleExecute() {
	doc, _ := dsl.Parse([]byte(patient))
	result := workflowtest.Execute(context.Background(), doc, workflowtest.Case{
		Input: map[string]any{"id": "a7"},
		Mocks: []workflowtest.Mock{{Task: "stock", Respond: []workflowtest.Response{{
			Body: map[string]any{"left": 3}, HasBody: true,
		}}}},
		Expect: workflowtest.Expect{Holds: []string{".left == 3"}},
	})
	fmt.Println(result.Passed(), result.Duration, result.Requests[0].URL)
	// Output: true 720h0m0s https://shop.example/stock/a7
}

// The cases of a file run at once. A case that fails explains itself.
func ExampleFile_Run() {
	doc, _ := dsl.Parse([]byte(patient))
	file, violations := workflowtest.Parse([]byte(`
cases:
  - name: asks for the stock after a month
    input: {id: a7}
    mocks: [{task: stock, respond: {body: {left: 3}}}]
    expect: {output: {left: 4}}
`))
	if len(violations) > 0 {
		fmt.Println(violations)
		return
	}
	report := file.Run(context.Background(), doc, nil, 2)
	fmt.Println(report.Results[0].Explain())
	// Output:
	// output: the output differs
	//   --- expected
	//   +++ actual
	//   @@ -1,3 +1,3 @@
	//    {
	//   -  "left": 4
	//   +  "left": 3
	//    }
	// steps:
	//   +0s      completed wait   /do/0/pause
	//   +720h0m0s completed call   /do/1/stock
}
