package webui

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
)

// suffix is that of files which the build has compressed.
const suffix = ".gz"

// filePolicy is for workers, whose policy is that of the response with their script: they may import other files.
const filePolicy = "default-src 'none'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'"

// file is one file of the UI. It is read once, when it is first requested.
type file struct {
	name string
	load func() (content, error)
}

// content is what a file sends.
type content struct {
	plain []byte
	// compressed is nil where the build did not compress the file.
	compressed []byte
	tag        string
}

// newFile returns the file that is stored under a name, which ends with [suffix] if it is compressed.
func newFile(files fs.FS, stored string) *file {
	name, isCompressed := strings.CutSuffix(stored, suffix)
	return &file{name: name, load: sync.OnceValues(func() (content, error) {
		data, err := fs.ReadFile(files, stored)
		if err != nil {
			return content{}, fmt.Errorf("read %q of the web UI: %w", stored, err)
		}
		if isCompressed {
			return uncompressed(name, data)
		}
		return content{plain: data, tag: tag(data)}, nil
	})}
}

// newCompressed returns a file with compressed content.
func newCompressed(name string, data []byte) *file {
	return &file{name: name, load: sync.OnceValues(func() (content, error) { return uncompressed(name, data) })}
}

func uncompressed(name string, data []byte) (content, error) {
	plain, err := decompress(data)
	if err != nil {
		return content{}, fmt.Errorf("decompress %q of the web UI: %w", name, err)
	}
	return content{plain: plain, compressed: data, tag: tag(plain)}, nil
}

// tag identifies content.
func tag(plain []byte) string {
	sum := sha256.Sum256(plain)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

func decompress(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// serve sends the file. One with a hash in its name never changes; browsers ask again for others.
func (f *file) serve(w http.ResponseWriter, r *http.Request, immutable bool) {
	c, err := f.load()
	if err != nil {
		panic(err) // the files are part of the program
	}
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	if immutable {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", filePolicy)
	if kind := contentType(f.name); kind != "" {
		h.Set("Content-Type", kind)
	}
	body, tag := c.plain, c.tag
	if c.compressed != nil {
		h.Set("Vary", "Accept-Encoding")
		if acceptsGzip(r.Header) {
			body, tag = c.compressed, c.tag+"-gzip"
			h.Set("Content-Encoding", "gzip")
			if h.Get("Content-Type") == "" {
				h.Set("Content-Type", http.DetectContentType(c.plain))
			}
		}
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, path.Base(f.name), time.Time{}, bytes.NewReader(body))
}

// acceptsGzip reports whether a client accepts gzip.
func acceptsGzip(h http.Header) bool {
	for _, value := range h.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(value, ",") {
			name, parameters, _ := strings.Cut(part, ";")
			if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
				continue
			}
			_, weight, given := strings.Cut(strings.ReplaceAll(parameters, " ", ""), "q=")
			if q, err := strconv.ParseFloat(weight, 64); !given || err == nil && q > 0 {
				return true
			}
		}
	}
	return false
}
