// Package notice has the licence texts of the software of others that Signalbox's programs contain: Go modules and the
// packages of the web UI.
//
//	text, err := notice.Text()
//
// `go generate` collects them from the modules and packages that the programs are built from, for both programs
// together; a test fails when one is missing or another version.
package notice

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
)

//go:generate go run ../generate licences ../.. licences.txt.gz

//go:embed licences.txt.gz
var compressed []byte

// Compressed returns the text, compressed by gzip.
func Compressed() []byte { return bytes.Clone(compressed) }

// Text returns the text, for people.
func Text() (string, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return "", fmt.Errorf("decompress the licences: %w", err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return "", fmt.Errorf("decompress the licences: %w", err)
	}
	return string(text), nil
}
