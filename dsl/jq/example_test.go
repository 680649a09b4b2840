package jq_test

import (
	"errors"
	"fmt"

	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// A program is compiled once and can run any number of times. Equal values encode to equal bytes.
func Example() {
	p, err := jq.Compile(`.orders | map(.total) | add`, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	input, err := jq.DecodeJSON([]byte(`{"orders": [{"total": 12}, {"total": 30}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	sum, err := p.Run(input, nil, jq.NewFuel(100_000))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := jq.EncodeJSON(map[string]any{"sum": sum, "currency": "EUR"})
	fmt.Println(string(text), err)
	// Output: {"currency":"EUR","sum":42} <nil>
}

// An expression without end stops when its budget is used, after the same number of units on every machine.
func ExampleFuel() {
	p, err := jq.Compile(`def f: f; f`, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fuel := jq.NewFuel(1_000)
	_, err = p.Run(nil, nil, fuel)
	fmt.Println(errors.Is(err, jq.ErrFuel), fuel.Used())
	// Output: true 1000
}

// The error of an expression that does not compile has a position.
func ExampleSyntaxError() {
	_, err := jq.Compile(`.items | map($x)`, []string{"input"})
	if invalid, ok := errors.AsType[*jq.SyntaxError](err); ok {
		fmt.Println(invalid.Offset, invalid.Variable)
	}
	// Output: 13 x
}

// An assembly separates the parts of an expression that can be evaluated from the references to values that must not be
// read.
func ExampleCompiler_Assemble() {
	a, err := jq.NewCompiler().Assemble(`"Bearer " + $secrets.token`, nil, "secrets")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, part := range a.Join {
		if part.Program != nil {
			text, err := part.Program.Run(nil, nil, nil)
			fmt.Printf("program %q %v\n", text, err)
		} else {
			fmt.Println("reference", part.Path)
		}
	}
	// Output:
	// program "Bearer " <nil>
	// reference [token]
}
