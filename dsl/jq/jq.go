// Package jq compiles and runs the expressions of the workflow language: jq, with limits that make its cost
// predictable.
//
// It adds to gojq, the jq virtual machine it uses: an exact and repeatable compute budget ([Fuel]), limits on the size
// and depth of every value, a list of allowed functions (none that reads the machine's clock, the environment, files or
// more input), integers that keep all their digits, and equal bytes for equal values.
//
//	p, err := jq.Compile(`.orders | map(.total) | add`, nil)
//	v, err := p.Run(input, nil, jq.NewFuel(100_000))
//
// Programs are immutable and safe for concurrent use. Package dsl defines where expressions are allowed and which
// variables exist there.
package jq

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/itchyny/gojq"

	"github.com/signalbox-dev/signalbox/dsl/jq/internal/guard"
)

// Program is a compiled expression.
type Program struct {
	source string
	vars   []string
	code   *gojq.Code
	clock  bool
}

// SyntaxError is the error of an expression that does not compile. Offset is the byte in the source at which the
// error was detected, or -1 if it has no single position.
type SyntaxError struct {
	Message    string
	Suggestion string
	Variable   string // the unknown variable, without "$", if that is the error
	Function   string // the unknown function, if that is the error
	Offset     int
	Limit      bool // the expression is over a limit of its size
}

func (e *SyntaxError) Error() string { return e.Message }

// The limits of one expression. The time to compile one grows with the square of its terms.
const (
	MaxSource = 64 << 10 // bytes of its text
	MaxTerms  = 4000     // its terms: values, operators, suffixes and patterns
)

// The costs of compiling an expression, in terms: those of every expression, and the bytes of its text that cost as
// much as one term.
const (
	expressionCost = 10
	bytesPerTerm   = 8
)

// Compiler compiles expressions and holds the data that they share. It is safe for concurrent use.
type Compiler struct {
	lib     library
	options []gojq.CompilerOption

	budget int64 // in terms, for all expressions together; 0: unlimited
	spent  atomic.Int64
}

// NewCompiler returns a compiler. It takes about as long as compiling one expression.
func NewCompiler() *Compiler { return NewLimitedCompiler(0) }

// NewLimitedCompiler returns a compiler for expressions of limited cost together: ten terms for each expression, and
// one for each of its terms and each eight bytes of its text. An expression that is compiled several times has its cost
// each time. A limit of 0 is none.
func NewLimitedCompiler(terms int) *Compiler {
	return &Compiler{budget: int64(terms), lib: newLibrary(), options: guard.Options()}
}

// Compile compiles one expression. To compile many, share a [Compiler].
func Compile(source string, vars []string) (*Program, error) {
	return NewCompiler().Compile(source, vars)
}

// Compile checks and compiles an expression. vars are the names of the variables it may use, without "$".
// The error is a *SyntaxError.
func (c *Compiler) Compile(source string, vars []string) (*Program, error) {
	query, err := c.parse(source)
	if err != nil {
		return nil, err
	}
	program, failed := c.compile(query, source, vars)
	if failed != nil {
		return nil, failed
	}
	return program, nil
}

// parse parses an expression within the limit of its text.
func (c *Compiler) parse(source string) (*gojq.Query, error) {
	if len(source) > MaxSource {
		return nil, &SyntaxError{
			Message: fmt.Sprintf("the expression has %d bytes, more than the limit of %d", len(source), MaxSource), Offset: -1,
			Limit: true}
	}
	if err := c.spend(expressionCost + len(source)/bytesPerTerm); err != nil {
		return nil, err
	}
	query, err := gojq.Parse(source)
	if err != nil {
		return nil, parseError(err)
	}
	return query, nil
}

// Spent returns the cost of all expressions that were compiled, in terms.
func (c *Compiler) Spent() int64 { return c.spent.Load() }

// spend adds to the cost of all expressions of the compiler, and returns an error once it is over the budget.
func (c *Compiler) spend(terms int) *SyntaxError {
	if spent := c.spent.Add(int64(terms)); c.budget == 0 || spent <= c.budget {
		return nil
	}
	return &SyntaxError{Message: fmt.Sprintf("all expressions together have a size of more than %d terms", c.budget),
		Offset: -1, Limit: true}
}

// compile compiles a query that was parsed from source, or a part of it.
func (c *Compiler) compile(query *gojq.Query, source string, vars []string) (*Program, *SyntaxError) {
	r := &rewriter{source: source, vars: slices.Clone(vars), lib: c.lib, used: make(map[string]bool)}
	safe := r.query(query)
	if err := c.spend(r.terms); err != nil {
		return nil, err
	}
	if r.err != nil {
		return nil, r.err
	}
	prologue, err := r.lib.prologue(r.used)
	if err != nil {
		return nil, &SyntaxError{Message: err.Error(), Offset: -1}
	}
	safe = &gojq.Query{FuncDefs: prologue, Term: paren(safe)}
	names := make([]string, len(vars), len(vars)+1)
	for i, v := range vars {
		names[i] = "$" + v
	}
	code, err := gojq.Compile(safe, append(slices.Clip(c.options), gojq.WithVariables(append(names, fuelVar)))...)
	if err != nil {
		return nil, &SyntaxError{Message: err.Error(), Offset: -1}
	}
	return &Program{source: source, vars: r.vars, code: code, clock: r.used[clockDefinition]}, nil
}

func parseError(err error) error {
	var pe *gojq.ParseError
	if !errors.As(err, &pe) {
		return &SyntaxError{Message: err.Error(), Offset: -1}
	}
	return &SyntaxError{Message: pe.Error(), Offset: max(pe.Offset-len(pe.Token), 0)}
}

// Source returns the text the program was compiled from.
func (p *Program) Source() string { return p.source }

// ReadsClock reports whether the program contains now, which needs a [Fuel] with its Now.
func (p *Program) ReadsClock() bool { return p.clock }

// Run evaluates the program on input and returns its first result; nil if it has none (empty). Further results are not
// computed: an expression has one value, and a stream is written as an array, [ … ]. Variables that are not given are
// null. A nil fuel means a budget of DefaultFuel.
func (p *Program) Run(input any, vars map[string]any, fuel *Fuel) (any, error) {
	if fuel == nil {
		fuel = NewFuel(DefaultFuel)
	}
	values := make([]any, len(p.vars)+1)
	values[len(p.vars)] = fuel
	for i, name := range p.vars {
		values[i] = vars[name]
	}
	fuel.Begin(append(slices.Clone(values[:len(p.vars)]), input)...)
	defer fuel.Begin()
	v, ok := p.code.RunWithContext(guard.Counter{Fuel: fuel}, input, values...).Next()
	if !ok {
		return nil, nil
	}
	if err, failed := v.(error); failed {
		return nil, fmt.Errorf("evaluate %.200q: %w", p.source, err)
	}
	result, err := fuel.Result(v)
	if err != nil {
		return nil, fmt.Errorf("evaluate %.200q: the result: %w", p.source, err)
	}
	return result, nil
}
