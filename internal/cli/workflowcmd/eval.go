package workflowcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// evalFlags are the flags of "eval".
type evalFlags struct {
	input, context, secrets string
	vars                    []string
	template                bool
	run                     string
	step                    int64
}

func evalCommand(s *invocation.Invocation) *cobra.Command {
	var flags evalFlags
	cmd := &cobra.Command{
		Use:   "eval EXPRESSION",
		Short: "Evaluate an expression as a task would, without a server",
		Long: `Evaluate an expression, with or without ${ }, as a task would: with the same functions and the same limits. With
--template the argument is a value in YAML or JSON, in which texts in ${ } are expressions. @FILE reads the argument from
a file.

--input is the value of . and of $input, --context of $context, --secrets of $secrets, --var of any other variable. With
--run and --step, . and $input are the input of that step of a run, and $output its output, as you may see them; a server
is needed then.

Prints the result as JSON and, on standard error, its type and the compute used, in units of fuel.`,
		Example: `  signalbox workflow eval '.items | map(.price) | add' --input '{"items": [{"price": 3}, {"price": 4}]}'
  signalbox workflow eval --template '{total: "${ .sum }"}' --input '{"sum": 7}' -o json
  signalbox workflow eval .amount --run 0199a4f2 --step 1`,
		Args: invocation.Args(1, 1, "EXPRESSION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return eval(cmd.Context(), s, args[0], &flags)
		},
	}
	cmd.Flags().StringVar(&flags.input, "input", "", "`value` of . and $input: JSON, a file of JSON, or - for standard input")
	cmd.Flags().StringVar(&flags.context, "context", "", "`value` of $context, as --input")
	cmd.Flags().StringVar(&flags.secrets, "secrets", "", "`values` of $secrets, as --input; do not give real ones")
	cmd.Flags().StringArrayVar(&flags.vars, "var", nil,
		"`NAME=VALUE` of a variable, without $; VALUE as --input; may be repeated")
	cmd.Flags().BoolVar(&flags.template, "template", false, "the argument is a value with expressions in ${ }")
	cmd.Flags().StringVar(&flags.run, "run", "", "`ID` of the run whose step has the values, or its beginning")
	cmd.Flags().Int64Var(&flags.step, "step", 0, "`number` of the step of the run")
	s.BindClient(cmd)
	return cmd
}

// evaluated is the JSON of the result of "eval".
type evaluated struct {
	Result json.RawMessage `json:"result"`
	Type   string          `json:"type"`
	Fuel   int64           `json:"fuel"`
}

func eval(ctx context.Context, s *invocation.Invocation, argument string, flags *evalFlags) error {
	name, source, err := evalSource(argument)
	if err != nil {
		return err
	}
	vars, err := flags.variables(ctx, s)
	if err != nil {
		return err
	}
	evaluate, violations := parseEval(source, flags.template, slices.Sorted(maps.Keys(vars)))
	for _, p := range violations {
		s.Note("%s", violationOf(p).line(name, s.ErrStyle()))
	}
	if evaluate == nil {
		return exit.Silently(exit.Failed)
	}
	fuel := jq.NewFuel(interp.DefaultLimits().ExpressionFuel)
	fuel.Now = s.Now()
	result, err := evaluate(vars["input"], vars, fuel)
	if err != nil {
		return exit.Errorf(exit.Failed, "evaluate: %w (%d units of fuel used)", err, fuel.Used())
	}
	encoded, err := jq.EncodeJSON(result)
	if err != nil {
		return exit.Errorf(exit.Failed, "evaluate: %w", err)
	}
	kind := jq.TypeName(result)
	if s.Format().Structured() {
		return output.Value(s.Out, s.Format(), evaluated{encoded, strings.TrimPrefix(strings.TrimPrefix(kind, "an "), "a "),
			fuel.Used()})
	}
	if err := output.Value(s.Out, output.JSON, json.RawMessage(encoded)); err != nil {
		return err
	}
	s.Note("%s, %d units of fuel", kind, fuel.Used())
	return nil
}

// evalSource returns the source of an expression and the name of its place in messages.
func evalSource(argument string) (name, source string, err error) {
	file, ok := strings.CutPrefix(argument, "@")
	if !ok || strings.ContainsAny(file, " |(") || jqFormat(file) {
		return "expression", argument, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", "", exit.Errorf(exit.Failed, "read the expression: %w", err)
	}
	return file, strings.TrimSuffix(string(content), "\n"), nil
}

// jqFormat reports whether a name after @ is one of a format of jq, such as @base64.
func jqFormat(name string) bool {
	return slices.Contains([]string{"text", "json", "html", "uri", "csv", "tsv", "sh", "base64", "base64d", "base32",
		"base32d", "urid"}, name)
}

// parseEval returns the function that evaluates an expression or a template; nil if it does not compile.
func parseEval(source string, template bool, vars []string) (
	func(input any, vars map[string]any, fuel *jq.Fuel) (any, error), dsl.Violations) {
	if template {
		t, violations := dsl.ParseTemplate([]byte(source), vars)
		if t == nil {
			return nil, violations
		}
		return t.Eval, violations
	}
	e, violations := dsl.ParseExpr(source, vars)
	if e == nil {
		return nil, violations
	}
	return e.Eval, violations
}

// variables returns the values of the variables.
func (f *evalFlags) variables(ctx context.Context, s *invocation.Invocation) (map[string]any, error) {
	vars := map[string]any{"input": nil, "context": nil, "secrets": map[string]any{}}
	switch {
	case (f.run == "") != (f.step == 0):
		return nil, exit.Usagef("--run and --step belong together")
	case f.run != "" && f.input != "":
		return nil, exit.Usagef("--run and --input exclude each other")
	case f.run != "":
		if err := stepVariables(ctx, s, f, vars); err != nil {
			return nil, err
		}
	}
	for _, one := range []struct{ flag, name, text string }{
		{"input", "input", f.input}, {"context", "context", f.context}, {"secrets", "secrets", f.secrets},
	} {
		if err := setVariable(s, vars, one.flag, one.name, one.text); err != nil {
			return nil, err
		}
	}
	for _, pair := range f.vars {
		name, text, ok := strings.Cut(pair, "=")
		if !ok || name == "" || text == "" {
			return nil, exit.Usagef("--var: %q is not NAME=VALUE", pair)
		}
		if err := setVariable(s, vars, "var", strings.TrimPrefix(name, "$"), text); err != nil {
			return nil, err
		}
	}
	return vars, nil
}

func setVariable(s *invocation.Invocation, vars map[string]any, flag, name, text string) error {
	if text == "" {
		return nil
	}
	text, err := invocation.ReadJSON(flag, text, s.In)
	if err != nil {
		return err
	}
	vars[name], err = jq.DecodeJSON([]byte(text))
	if err != nil {
		return exit.Usagef("--%s: %w", flag, err)
	}
	return nil
}

// stepVariables sets the variables that a step of a run has.
func stepVariables(ctx context.Context, s *invocation.Invocation, f *evalFlags, vars map[string]any) error {
	id, err := s.RunID(ctx, f.run)
	if err != nil {
		return err
	}
	response, err := invocation.Call(ctx, s, s.Runs().GetStep, &signalboxv1.GetStepRequest{
		Project: s.Project(), Id: id, Number: f.step,
	}, "read step %d of run %q", f.step, id)
	if err != nil {
		return err
	}
	step := response.GetStep()
	for name, text := range map[string]string{"input": step.GetInput().GetJson(), "output": step.GetOutput().GetJson()} {
		if vars[name] = nil; text == "" {
			continue
		}
		if vars[name], err = jq.DecodeJSON([]byte(text)); err != nil {
			return fmt.Errorf("read the %s of step %d: %w", name, f.step, err)
		}
	}
	if step.GetInputShortened() != nil || step.GetOutputShortened() != nil {
		s.Note("the values of the step are shortened")
	}
	return nil
}
