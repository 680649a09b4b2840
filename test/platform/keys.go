package platform

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/proxy"

	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/keyring"
)

// keyID names the key of the tests.
const keyID = "test"

// key is the same for all servers of all tests: each server can read what another one wrote, and a test can read
// Temporal's histories.
func key() []byte { return bytes.Repeat([]byte("k"), keyring.KeySize) }

// Keys returns the key ring of the tests' servers.
func Keys(t T) *keyring.Ring {
	t.Helper()
	ring, err := keyring.New(keyID, map[string][]byte{keyID: key()})
	if err != nil {
		t.Fatalf("make the ring of keys: %v", err)
	}
	return ring
}

// WithKeys returns the setting that gives a server the tests' key.
func WithKeys(t T) string {
	t.Helper()
	// Not in a folder named after the test: the setting would end at a comma in the path.
	folder, err := os.MkdirTemp("", "signalbox-key-")
	if err != nil {
		t.Fatalf("make a folder for the key of the tests: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) }) // what remains is in the system's temporary folder
	path := filepath.Join(folder, "test.key")
	if err := os.WriteFile(path, []byte(base64.StdEncoding.EncodeToString(key())), 0o600); err != nil {
		t.Fatalf("write the key of the tests: %v", err)
	}
	return "SIGNALBOX_ENCRYPTION_KEYS=" + keyID + "=" + path
}

// unsealHistory decrypts all sealed payloads of a history.
func unsealHistory(t T, history *historypb.History) {
	t.Helper()
	codec := codec.NewCodec(Keys(t))
	err := proxy.VisitPayloads(t.Context(), history, proxy.VisitPayloadsOptions{
		Visitor: func(_ *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
			return codec.Decode(payloads)
		},
	})
	if err != nil {
		t.Fatalf("open a history: %v", err)
	}
}
