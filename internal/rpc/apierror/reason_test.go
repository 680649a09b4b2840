package apierror_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
)

// reasonsIn returns the constants of a Go file whose values look like reasons: name of the constant to value.
func reasonsIn(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			value, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			if value == strings.ToUpper(value) && value != "" {
				found[spec.Names[0].Name] = value
			}
		}
		return true
	})
	return found
}

func TestEveryReasonIsListedOnce(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for _, r := range apierror.All() {
		require.False(t, listed[r.Name], "%s is listed twice", r.Name)
		listed[r.Name] = true
		require.NotEmpty(t, r.Meaning)
		require.NotEmpty(t, r.Advice)
	}
	known := map[string]bool{}
	for _, path := range []string{"../../apperror/apperror.go", "reason.go"} {
		for _, name := range reasonsIn(t, path) {
			known[name] = true
		}
	}
	require.Greater(t, len(known), 20)
	require.Equal(t, known, listed)
}

// TestReferenceMatchesAllUses reads every apperror.New in the product and compares its class with the reference.
func TestReferenceMatchesAllUses(t *testing.T) {
	t.Parallel()
	codes := map[string][]connect.Code{}
	for _, r := range apierror.All() {
		codes[r.Name] = r.Codes
	}
	classes := map[string]connect.Code{
		"Invalid": connect.CodeInvalidArgument, "NotFound": connect.CodeNotFound, "Exists": connect.CodeAlreadyExists,
		"Refused": connect.CodeFailedPrecondition, "Exhausted": connect.CodeResourceExhausted,
		"Unavailable": connect.CodeUnavailable,
		"Denied":      connect.CodePermissionDenied, "Unauthenticated": connect.CodeUnauthenticated,
	}
	constants := reasonsIn(t, "../../apperror/apperror.go")
	calls := 0
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			class, name, ok := newCall(n)
			if !ok {
				return true
			}
			calls++
			require.Contains(t, codes[constants[name]], classes[class], "%s: %s", fset.Position(n.Pos()), name)
			return true
		})
		return nil
	}))
	require.Greater(t, calls, 20)
}

// newCall returns class and reason of apperror.New(apperror.<class>, apperror.<reason>, …).
func newCall(n ast.Node) (class, name string, ok bool) {
	call, isCall := n.(*ast.CallExpr)
	if !isCall || len(call.Args) < 2 || selected(call.Fun) != "New" {
		return "", "", false
	}
	class, name = selected(call.Args[0]), selected(call.Args[1])
	return class, name, class != "" && name != ""
}

func selected(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "apperror" {
			return s.Sel.Name
		}
	}
	return ""
}

func TestHTTPStatuses(t *testing.T) {
	t.Parallel()
	want := map[connect.Code]int{
		connect.CodeCanceled: 499, connect.CodeUnknown: 500, connect.CodeInvalidArgument: 400,
		connect.CodeDeadlineExceeded: 504,
		connect.CodeNotFound:         404, connect.CodeAlreadyExists: 409, connect.CodePermissionDenied: 403,
		connect.CodeResourceExhausted:  429,
		connect.CodeFailedPrecondition: 400, connect.CodeAborted: 409, connect.CodeOutOfRange: 400,
		connect.CodeUnimplemented: 501,
		connect.CodeInternal:      500, connect.CodeUnavailable: 503, connect.CodeDataLoss: 500,
		connect.CodeUnauthenticated: 401, 99: 500,
	}
	for _, r := range apierror.All() {
		if strings.HasSuffix(r.Name, "_TOO_LARGE") {
			require.Equal(t, 413, apierror.StatusOf(r.Codes[0], r.Name), r.Name)
		}
	}
	for code, status := range want {
		require.Equal(t, status, apierror.StatusOf(code, apperror.RateLimited), code)
	}
}
