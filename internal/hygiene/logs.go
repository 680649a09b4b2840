package hygiene

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// LogDurations finds durations in log lines whose unit is not the second. The logger writes values of time.Duration in
// seconds, so a call passes them as they are. A call that converts one itself uses Seconds, under a name that ends in
// _seconds.
func LogDurations(tree Tree) []Violation {
	var violations []Violation
	for _, folder := range tree.Folders() {
		for _, f := range tree[folder] {
			if f.Test || f.Kit || f.Generated {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), folder, f.Source, parser.SkipObjectResolution)
			if err != nil {
				continue // Load has parsed it
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && logs(call) {
					violations = append(violations, durations(folder, call)...)
				}
				return true
			})
		}
	}
	return violations
}

// logs reports whether a call has the name of a method of slog.Logger that accepts attributes.
func logs(call *ast.CallExpr) bool {
	switch strings.TrimSuffix(method(call), "Context") {
	case "Debug", "Info", "Warn", "Error", "Log", "With":
		return true
	}
	return false
}

// method returns the name of the called method or function of a package; "" for other calls.
func method(e ast.Expr) string {
	if call, ok := e.(*ast.CallExpr); ok {
		if selector, ok := call.Fun.(*ast.SelectorExpr); ok {
			return selector.Sel.Name
		}
	}
	return ""
}

func durations(folder string, call *ast.CallExpr) []Violation {
	var violations []Violation
	for i := 1; i < len(call.Args); i++ {
		key, ok := call.Args[i-1].(*ast.BasicLit)
		if !ok || key.Kind != token.STRING {
			continue
		}
		name := strings.Trim(key.Value, `"`)
		switch unit := method(call.Args[i]); unit {
		case "Milliseconds", "Microseconds", "Nanoseconds", "Minutes", "Hours":
			violations = append(violations,
				Violation{folder, fmt.Sprintf("logs %q in %s: pass the duration itself", name, unit)})
		case "Seconds":
			if !strings.HasSuffix(name, "_seconds") {
				violations = append(violations,
					Violation{folder, fmt.Sprintf("logs %q in seconds: name it %s_seconds", name, name)})
			}
		case "String":
			of := receiver(call.Args[i])
			if namesDuration(lastName(of)) ||
				slices.Contains([]string{"Round", "Truncate", "Since", "Sub", "Until"}, method(of)) {
				violations = append(violations,
					Violation{folder, fmt.Sprintf("logs %q as text with varying units: pass the duration itself", name)})
			}
		}
	}
	return violations
}

// namesDuration matches the names of variables and fields that are durations.
func namesDuration(name string) bool {
	return regexp.MustCompile(
		`(?i)(every|interval|timeout|ttl|delay|backoff|duration|elapsed|took|wait|period|grace|lifetime|age)$`).
		MatchString(name)
}

// lastName returns the last name of a variable or field: Timeout of o.Timeout; "" for other expressions.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// receiver returns the value whose method a call calls; nil for other expressions.
func receiver(e ast.Expr) ast.Expr {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return nil
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	return selector.X
}
