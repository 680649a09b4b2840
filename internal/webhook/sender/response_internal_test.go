package sender

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/netguard"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

// TestResponsesShowNoCredentials sends deliveries to a receiver that repeats the credentials of its address: neither
// the kept response nor the error has a part of one, wherever the response is cut and however it is written.
func TestResponsesShowNoCredentials(t *testing.T) {
	t.Parallel()
	const all = "planted-user-4711 planted-password-4712 planted-parameter-4713"
	wide := func(text string) string {
		var b strings.Builder
		for _, unit := range utf16.Encode([]rune(text)) {
			b.Write([]byte{byte(unit), byte(unit >> 8)})
		}
		return b.String()
	}
	for name, answer := range map[string]string{
		"plain":               all,
		"wide characters":     wide(all),
		"control characters":  strings.ReplaceAll(all, "-", "\x00-\x1b"),
		"cut by the limit":    strings.Repeat(all+"\n", 33) + strings.Repeat("x", 500),
		"many, then cut":      strings.Repeat("planted-password-4712", 2*webhook.MaxResponse/21+1),
		"longer than is read": strings.Repeat("planted-password-4712", maxReadResponse/21+1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, answer)
			}))
			t.Cleanup(receiver.Close)
			keys, err := keyring.New("first", map[string][]byte{"first": []byte(strings.Repeat("k", 32))})
			require.NoError(t, err)
			target, err := json.Marshal(webhook.Target{
				Secret: "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ=",
				URL: strings.Replace(receiver.URL, "://", "://planted-user-4711:planted-password-4712@", 1) +
					"/hook?key=planted-parameter-4713",
			})
			require.NoError(t, err)
			hook := webhook.Webhook{ID: "w1", Project: "shop", Name: "hook", Format: webhook.CloudEvents}
			hook.Sealed, err = keys.Seal(target, "webhook", hook.Project, hook.ID)
			require.NoError(t, err)
			s := New(Options{
				Keys: keys, Guard: netguard.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}), Timeout: time.Minute,
				MaxConcurrent: 1, Now: time.Now,
			})
			t.Cleanup(s.client.CloseIdleConnections)
			got := s.attempt(t.Context(),
				webhook.Claim{Webhook: hook, Delivery: webhook.Delivery{ID: "msg_1", Event: json.RawMessage(`{}`)}}).attempt
			require.Equal(t, http.StatusBadRequest, got.HTTPStatus, got.Error)
			shown := fmt.Sprintf("%s\n%s", got.Error, got.Response)
			for _, leak := range []string{"lanted", "471"} {
				require.NotContains(t, shown, leak)
			}
		})
	}
}
