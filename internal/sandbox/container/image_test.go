package container_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/sandbox/container"
	"github.com/signalbox-dev/signalbox/internal/sandbox/container/enginetest"
)

// archive returns a tar archive of one file.
func archive(t *testing.T, name string, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}))
	_, err := w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// An image that wants to be root, and a folder on the disk of the host, gets neither.
func hostileImages(t *testing.T, socket string) {
	const name = "docker.io/signalbox/test:hostile"
	status, answer := enginetest.Do(t, socket, http.MethodPost, "/build?t="+url.QueryEscape(name), bytes.NewReader(
		archive(t, "Dockerfile", []byte("FROM "+enginetest.Image+"\nUSER 0\nVOLUME /data /tmp\n"))))
	require.Equal(t, http.StatusOK, status, answer)
	p := shell(`id -u; for i in 1 2 3; do dd if=/dev/zero of=/data/$i bs=1M count=3 || exit 9; done`)
	p.Image = name
	r, err := run(t.Context(), container.New(options(socket)), p)
	require.NoError(t, err)
	require.Equal(t, 9, r.Code, r.Stderr)
	require.Equal(t, "65534\n", r.Stdout)
	require.Contains(t, r.Stderr, "No space left on device")
	_, volumes := enginetest.Do(t, socket, http.MethodGet, "/volumes", nil)
	require.Contains(t, volumes, `"Volumes":[]`)
}

// registry serves images of one layer.
type registry struct {
	*httptest.Server
	mux *http.ServeMux
}

func startRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{mux: http.NewServeMux()}
	r.Server = httptest.NewServer(r.mux)
	t.Cleanup(r.Close)
	r.mux.HandleFunc("/v2/{$}", func(http.ResponseWriter, *http.Request) {})
	return r
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// add adds an image with a layer that serve sends, and returns the image's name.
func (r *registry) add(t *testing.T, name, diff, layer string, size int64, serve http.HandlerFunc) string {
	t.Helper()
	config, err := json.Marshal(map[string]any{"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{diff}}})
	require.NoError(t, err)
	const kind = "application/vnd.docker.distribution.manifest.v2+json"
	manifest, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": kind,
		"config": map[string]any{"mediaType": "application/vnd.docker.container.image.v1+json", "size": len(config), "digest": digest(config)},
		"layers": []any{map[string]any{"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", "size": size, "digest": layer}}})
	require.NoError(t, err)
	send := func(kind string, content []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Docker-Content-Digest", digest(content))
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			_, _ = w.Write(content) // the engine may have enough of it
		}
	}
	r.mux.HandleFunc("/v2/"+name+"/manifests/latest", send(kind, manifest))
	r.mux.HandleFunc("/v2/"+name+"/manifests/"+digest(manifest), send(kind, manifest))
	r.mux.HandleFunc("/v2/"+name+"/blobs/"+digest(config), send("application/octet-stream", config))
	r.mux.HandleFunc("/v2/"+name+"/blobs/"+layer, serve)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(r.URL, "http://"))
	require.NoError(t, err)
	return net.JoinHostPort("127.0.0.1", port) + "/" + name + ":latest" // the engine uses http for this host
}

// An image over the limit is refused: its pull is ended, and one whose layers turn out to be larger is removed again.
func hugeImages(t *testing.T, socket string) {
	r := startRegistry(t)
	ended := make(chan struct{}, 10) // the engine may try again
	endless := r.add(t, "endless", digest(nil), digest([]byte("endless")), 4<<30, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(4<<30))
		var err error
		for block := make([]byte, 64<<10); err == nil; {
			_, err = w.Write(block)
		}
		ended <- struct{}{}
	})
	content := archive(t, "zeros", make([]byte, 32<<20))
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	bomb := r.add(t, "bomb", digest(content), digest(packed.Bytes()), int64(packed.Len()), func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(packed.Bytes()) // the engine may have enough of it
	})
	o := options(socket)
	o.Images, o.MaxImage = []string{"**"}, 16<<20
	for _, image := range []string{endless, bomb} {
		p := shell(":")
		p.Image = image
		_, err := run(t.Context(), container.New(o), p)
		require.ErrorContains(t, err, "has more than 16777216 bytes")
		_, is := errors.AsType[*container.Refusal](err)
		require.True(t, is)
		status, answer := enginetest.Do(t, socket, http.MethodGet, "/images/"+image+"/json", nil)
		require.Equal(t, http.StatusNotFound, status, answer)
	}
	<-ended
}
