package invocation

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/api/httpbody"
)

// file is a Download of the parts, which ends with err.
type file struct {
	kind   string
	parts  []string
	err    error
	part   string
	closed bool
}

func (f *file) Receive() bool {
	if len(f.parts) == 0 {
		return false
	}
	f.part, f.parts = f.parts[0], f.parts[1:]
	return true
}

func (f *file) Msg() *httpbody.HttpBody {
	return &httpbody.HttpBody{ContentType: f.kind, Data: []byte(f.part)}
}
func (f *file) Err() error { return f.err }
func (f *file) Close() error {
	f.closed = true
	return nil
}

type screen struct{ bytes.Buffer }

func (s *screen) Columns() int { return 80 }

// The progress is on the terminal of standard error, unless the file itself is printed on a terminal.
func TestCopyShowsProgressBesideTheFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		out, errs interface {
			Write(p []byte) (int, error)
			String() string
		}
		notes string
	}{
		"to a file":                         {&bytes.Buffer{}, &screen{}, "\r\x1b[K0.0 MiB\r\x1b[K"},
		"to the terminal":                   {&screen{}, &screen{}, ""},
		"to a file, errors to another file": {&bytes.Buffer{}, &bytes.Buffer{}, ""},
	} {
		s := New(Streams{Out: c.out, Err: c.errs, Now: func() time.Time { return time.Unix(1000, 0) }})
		f := &file{parts: []string{"a,b\n", "1,2\n"}}
		require.NoError(t, s.Copy(f, s.Out, "export runs"), name)
		require.True(t, f.closed, name)
		require.Equal(t, "a,b\n1,2\n", c.out.String(), name)
		require.Equal(t, c.notes, c.errs.String(), name)
	}
	s := New(Streams{Err: &bytes.Buffer{}, Now: time.Now})
	for kind, want := range map[string]string{"text/csv": "\u202ea\x1b", "application/x-ndjson": `\u202ea\u001b`} {
		var out bytes.Buffer
		require.NoError(t, s.Copy(&file{kind: kind, parts: []string{"\u202ea\x1b"[:2], "\u202ea\x1b"[2:]}}, &out,
			"export runs"))
		require.Equal(t, want, out.String(), "a file of JSON keeps its value, one of CSV its bytes")
		terminal := &screen{}
		shown := New(Streams{Out: terminal, Err: terminal, Now: time.Now})
		require.NoError(t, shown.Copy(&file{kind: kind, parts: []string{"\u202ea\x1b"[:2], "\u202ea\x1b"[2:]}}, shown.Out,
			"export runs"))
		require.Equal(t, `\u202ea\u001b`, terminal.String(), kind)
	}
	require.ErrorContains(t, s.Copy(&file{err: errors.New("broken pipe")}, &bytes.Buffer{}, "export runs"),
		"export runs: broken pipe")
}
