// Package pack keeps snapshots small: each value is stored once, and the whole is compressed.
package pack

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// maxSize limits the uncompressed size in Read.
const maxSize = 256 << 20

// Pool stores each value once.
type Pool struct {
	// Values are the JSON of the values, by index.
	Values []json.RawMessage
	// Err is the error of a value that has no JSON form.
	Err   error
	index map[string]int
}

// NewPool returns an empty pool.
func NewPool() *Pool { return &Pool{index: map[string]int{}} }

// Put returns the index of a value.
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

// Write encodes a state as compressed JSON: loops over large collections compress well, and payloads have a size limit.
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

// Read decodes the result of Write.
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
