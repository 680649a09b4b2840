// Package pack makes snapshots small: each value is kept once, and the whole is compressed.
package pack

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// maxSize bounds what Read unpacks.
const maxSize = 256 << 20

// Pool keeps each value once.
type Pool struct {
	// Values are the JSON of what was put, by index.
	Values []json.RawMessage
	// Err is the error of a value that has no JSON form.
	Err   error
	index map[string]int
}

// NewPool makes an empty pool.
func NewPool() *Pool { return &Pool{index: map[string]int{}} }

// Put gives the index of a value.
func (p *Pool) Put(v any) int {
	data, err := jq.EncodeJSON(v)
	if err != nil {
		p.Err = err
		return 0
	}
	i, known := p.index[string(data)]
	if !known {
		i = len(p.Values)
		p.index[string(data)] = i
		p.Values = append(p.Values, data)
	}
	return i
}

// Write writes a state as compressed JSON: loops over large collections compress well, and a payload has a limit.
func Write(s any) ([]byte, error) {
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

// Read reads what Write wrote.
func Read(data []byte, s any) error {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxSize+1))
	if err != nil {
		return err
	}
	if len(text) > maxSize {
		return fmt.Errorf("the snapshot is over %d bytes", maxSize)
	}
	return json.Unmarshal(text, s)
}
