package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/internal/suggest"
	"github.com/signalbox-dev/signalbox/dsl/internal/value"
)

// EmbeddedExpression finds ${ } in a text that is not an expression, or ${ without }: the text is not evaluated.
// compiles reports whether a text without ${ } is an expression.
func EmbeddedExpression(text string, compiles func(string) bool) (Violation, bool) {
	begin := strings.Index(text, "${")
	if begin < 0 {
		return Violation{}, false
	}
	f := Violation{
		Code: Literal, Offset: begin, Message: "${ } in the middle of a text is no expression, the text stays as it stands",
		Suggestion: `write the whole text as one expression, for example ${ "a \(.b)" }`,
	}
	if !strings.Contains(text[begin:], "}") {
		f.Message, f.Suggestion = "${ is not closed: this is no expression, the text stays as it stands",
			"add the }, or write the text without ${"
	} else if whole, ok := Interpolated(text, compiles); ok {
		f.Suggestion = "write " + whole
	}
	return f, true
}

// Interpolated rewrites a text with ${ } in it as one expression. It returns false if the result does not compile or is
// too long to show.
func Interpolated(text string, compiles func(string) bool) (string, bool) {
	const longest = 160
	var b strings.Builder
	for rest, more := text, true; more && b.Len() < longest; {
		var before, after string
		before, after, more = strings.Cut(rest, "${")
		quoted, err := value.Encode(before)
		if err != nil {
			return "", false
		}
		b.Write(quoted[1 : len(quoted)-1])
		if !more {
			break
		}
		expression, next, closed := strings.Cut(after, "}")
		if !closed || strings.TrimSpace(expression) == "" {
			return "", false
		}
		b.WriteString(`\(` + strings.TrimSpace(expression) + ")")
		rest = next
	}
	inner := `"` + b.String() + `"`
	if len(inner) > longest || strings.ContainsAny(inner, "\n\r") || !compiles(inner) {
		return "", false
	}
	return "${ " + inner + " }", true
}

// LooksLikePath reports whether a text looks like a path into data. compiles is that of [Embedded].
func LooksLikePath(text string, compiles func(string) bool) bool {
	const longest = 200
	if !strings.HasPrefix(text, ".") && !strings.HasPrefix(text, "$") {
		return false // most texts, without a regular expression
	}
	return len(text) <= longest && regexp.MustCompile(`^(\.[A-Za-z_]|\$[a-z]+\.[A-Za-z_])[^/]*$`).MatchString(text) &&
		compiles(text)
}

// ForeignExpression finds a text that is an expression in other tools: {{ .x }}, or the JSONPath $.x.
func ForeignExpression(text string, compiles func(string) bool) (Violation, bool) {
	var inner, what string
	switch {
	case len(text) >= len("{{}}") && strings.HasPrefix(text, "{{") && strings.HasSuffix(text, "}}"):
		inner, what = strings.TrimSpace(text[2:len(text)-2]), "{{ }} is no expression"
	case (strings.HasPrefix(text, "$.") || strings.HasPrefix(text, "$[")) && !strings.Contains(text, "/"):
		inner, what = text[1:], "a path of JSONPath is no expression"
	default:
		return Violation{}, false
	}
	suggestion := "write an expression of jq in ${ }"
	if compiles(inner) {
		suggestion = "write ${ " + inner + " }"
	}
	return Violation{Code: Literal, Suggestion: suggestion, Message: what + ", the text stays as it stands"}, true
}

// DoubleBraces returns the name in ${{ name }}, which is an expression in other tools, and an object in this one.
func DoubleBraces(text string) (name string, ok bool) {
	if !strings.Contains(text, "${{") {
		return "", false // most expressions, without a regular expression
	}
	found := regexp.MustCompile(`^\s*\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}\s*$`).FindStringSubmatch(text)
	if found == nil {
		return "", false
	}
	return "." + found[1], true
}

// SyntaxSuggestion returns how to correct an expression that does not compile; empty if that is unknown.
func SyntaxSuggestion(text, problem string, compiles func(string) bool) string {
	trimmed := strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(trimmed, "${{"); ok && strings.HasSuffix(inner, "}}") {
		if inner = strings.TrimSpace(strings.TrimSuffix(inner, "}}")); compiles(inner) {
			return "write ${ " + inner + " }"
		}
	}
	if strings.Contains(problem, `"'"`) {
		return `use double quotes: "a text"`
	}
	return ""
}

// UnmatchableAttribute finds an expression on an event attribute that never matches. fails reports whether the
// expression fails on a string because a string has no members.
func UnmatchableAttribute(name, source string, fails func() bool) (Violation, bool) {
	switch {
	case slices.Contains([]string{"false", "null", "empty"}, source):
		return Violation{
			Code: NeverMatches, Suggestion: "remove the attribute, or write what it must be",
			Message: fmt.Sprintf("no event matches: the expression gives %s for each", source),
		}, true
	case slices.Contains([]string{"id", "source", "type"}, name) &&
		regexp.MustCompile(`^\.[A-Za-z_]`).MatchString(source) && fails():
		return Violation{
			Code: NeverMatches, Suggestion: fmt.Sprintf("write . for the %s, for example ${ startswith(\"com.example.\") }",
				name),
			Message: fmt.Sprintf("no event matches: the expression sees the %s itself, which is a text without members", name),
		}, true
	}
	return Violation{}, false
}

// IsAttributeName reports whether an attribute of an event may have the name, by the rules of CloudEvents.
func IsAttributeName(name string) bool { return regexp.MustCompile(`^[a-z0-9]+$`).MatchString(name) }

// DoubtfulKey finds a correlation key that reads the event itself for a member that is no attribute of CloudEvents:
// what the producer sent is in data. known reports whether the filter or CloudEvents name an attribute.
func DoubtfulKey(source string, known func(name string) bool) (Violation, bool) {
	member := regexp.MustCompile(`^\.([A-Za-z_][A-Za-z0-9_]*)`).FindStringSubmatch(source)
	if member == nil || known(member[1]) {
		return Violation{}, false
	}
	name, suggestion := member[1], "write .data"+source
	if !IsAttributeName(name) {
		return Violation{
			Code: NeverMatches, Suggestion: suggestion,
			Message: fmt.Sprintf("no event matches: no attribute of an event can be named %q; what the producer sent is in "+
				".data", name),
		}, true
	}
	return Violation{
		Code: ExtensionKey, Suggestion: suggestion + ", or name the attribute in with, too",
		Message: fmt.Sprintf("only events with an extension attribute %q match; what the producer sent is in .data", name),
	}, true
}

// MisspeltErrorType finds the type in an error filter that is a short or misspelt form of a standard error. The
// standard errors are base followed by one of names. canonical is the type in standard form, if it has one of the
// standard hosts and paths.
func MisspeltErrorType(text, canonical, base string, names []string) (Violation, bool) {
	meant := ""
	if name, standard := strings.CutPrefix(canonical, base); standard {
		if !slices.Contains(names, name) {
			meant = suggest.Nearest(name, names)
		}
	} else if name := strings.ToLower(text); slices.Contains(names, name) {
		meant = name
	} else {
		meant = misspeltHost(text, names)
	}
	return Violation{
		Code: NeverMatches, Suggestion: fmt.Sprintf("did you mean %q?", base+meant),
		Message: fmt.Sprintf("no error has the type %.200q: the filter matches nothing", text),
	}, meant != ""
}

// misspeltHost returns the name in a type that has a standard path on a misspelt host.
func misspeltHost(text string, names []string) string {
	hosts := []string{"https://serverlessworkflow.io", "https://open-workflow-specification.org"}
	for _, path := range []string{"/spec/1.0.0/errors/", "/dsl/errors/types/"} {
		host, name, found := strings.Cut(text, path)
		if found && slices.Contains(names, name) && suggest.Nearest(host, hosts) != "" {
			return name
		}
	}
	return ""
}

// NamesCredentials reports whether an expression reads the parameter of $authorization.
func NamesCredentials(source string) bool {
	return strings.Contains(source, "$authorization") &&
		regexp.MustCompile(`\$authorization\s*(\|\s*)?(\.\s*"?parameter\b|\[\s*"parameter")`).MatchString(source)
}

// PatternExpression returns the expression that matches an event attribute if it equals a text or, as a whole, matches
// it as a regular expression. It returns false for a text in which dots are the only special characters of regular
// expressions.
func PatternExpression(text string) (string, bool) {
	if !strings.ContainsAny(text, `*+?()[]{}|^$\`) {
		return "", false
	}
	plain, err := value.Encode(text)
	if err != nil {
		return "", false
	}
	whole, err := value.Encode("^(?:" + text + ")$")
	return fmt.Sprintf(`type == "string" and (. == %s or test(%s))`, plain, whole), err == nil
}

// Explain returns an error of the expression compiler in words that do not require knowledge of the compiler.
func Explain(err error) string {
	switch text := err.Error(); {
	case strings.HasPrefix(text, "function not defined: /"):
		return "there is nothing to evaluate in it"
	case text == "unexpected EOF":
		return "it ends where more is expected"
	default:
		return text
	}
}
