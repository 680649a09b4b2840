package platform

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/proxy"

	"github.com/signalbox-dev/signalbox/internal/engine/payload"
	"github.com/signalbox-dev/signalbox/internal/seal"
)

// keyID names the key of the tests.
const keyID = "test"

// key is the same for all servers of all tests, so that any of them reads what another has written, and a test what Temporal keeps.
func key() []byte { return bytes.Repeat([]byte("k"), seal.KeySize) }

// Keys are those of the tests' servers.
func Keys(t T) *seal.Ring {
	t.Helper()
	ring, err := seal.New(keyID, map[string][]byte{keyID: key()})
	if err != nil {
		t.Fatalf("make the ring of keys: %v", err)
	}
	return ring
}

// WithKeys is the setting that gives a server the key of the tests.
func WithKeys(t T) string {
	t.Helper()
	// Not in a folder named after the test: a comma in a path would be read as the end of it.
	folder, err := os.MkdirTemp("", "signalbox-key-")
	if err != nil {
		t.Fatalf("make a folder for the key of the tests: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) }) // the system's clean-up takes what is left
	path := filepath.Join(folder, "test.key")
	if err := os.WriteFile(path, []byte(base64.StdEncoding.EncodeToString(key())), 0o600); err != nil {
		t.Fatalf("write the key of the tests: %v", err)
	}
	return "SIGNALBOX_ENCRYPTION_KEYS=" + keyID + "=" + path
}

// open opens all that is sealed in a history.
func open(t T, history *historypb.History) {
	t.Helper()
	codec := payload.NewCodec(Keys(t))
	err := proxy.VisitPayloads(t.Context(), history, proxy.VisitPayloadsOptions{
		Visitor: func(_ *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
			return codec.Decode(payloads)
		},
	})
	if err != nil {
		t.Fatalf("open a history: %v", err)
	}
}
