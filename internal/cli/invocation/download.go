package invocation

import (
	"fmt"
	"io"
	"strings"

	"google.golang.org/genproto/googleapis/api/httpbody"

	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// Download is a file that arrives in parts.
type Download interface {
	Receive() bool
	Msg() *httpbody.HttpBody
	Err() error
	Close() error
}

// Copy writes a file to w as it arrives, with progress on a terminal, and closes it. An error says what was being done,
// such as "export runs".
func (s *Invocation) Copy(file Download, w io.Writer, what string) error {
	progress := s.progressBeside(w)
	escaped := terminal.NewEscaper(w)
	defer progress.Clear()
	received := int64(0)
	for file.Receive() {
		received += int64(len(file.Msg().GetData()))
		progress.Bytes(received)
		to := w
		if strings.Contains(file.Msg().GetContentType(), "json") { // its value stays; that of CSV would not
			to = escaped
		}
		if _, err := to.Write(file.Msg().GetData()); err != nil {
			_ = file.Close() // the first error is the one to report
			return fmt.Errorf("%s: write: %w", what, err)
		}
	}
	err := file.Err()
	if closed := file.Close(); err == nil {
		err = closed
	}
	return s.Failed(err, "%s", strings.TrimSpace(what))
}

// progressBeside returns the progress of what is written to w. There is none where the data itself is printed on the
// terminal.
func (s *Invocation) progressBeside(w io.Writer) *Progress {
	if IsTerminal(w) {
		return &Progress{}
	}
	return s.Progress()
}
