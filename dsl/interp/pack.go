package interp

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// maxSnapshot limits the uncompressed size of a snapshot.
const maxSnapshot = 256 << 20

// valuePool keeps snapshots small: it stores each value once.
type valuePool struct {
	// values are the JSON of the values, by index.
	values []json.RawMessage
	// err is the error of a value that has no JSON form.
	err   error
	index map[string]int
}

func newValuePool() *valuePool { return &valuePool{index: map[string]int{}} }

// put returns the index of a value.
func (p *valuePool) put(v any) int {
	data, err := jq.EncodeJSON(v)
	if err != nil {
		p.err = err
		return 0
	}
	i, known := p.index[string(data)]
	if !known {
		i = len(p.values)
		p.index[string(data)] = i
		p.values = append(p.values, data)
	}
	return i
}

// compressState encodes a state as compressed JSON: loops over large collections compress well, and payloads have a
// size limit.
func compressState(s any) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if err := json.NewEncoder(w).Encode(s); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return b.Bytes(), nil
}

// readState decodes the result of compressState.
func readState(data []byte, s any) error {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxSnapshot+1))
	if err != nil {
		return err
	}
	if len(text) > maxSnapshot {
		return fmt.Errorf("the snapshot is over %d bytes", maxSnapshot)
	}
	return json.Unmarshal(text, s)
}
