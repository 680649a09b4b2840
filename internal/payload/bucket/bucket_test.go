package bucket_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/payload"
	"github.com/signalbox-dev/signalbox/internal/payload/bucket"
	"github.com/signalbox-dev/signalbox/internal/payload/payloadtest"
)

// server is a service that is compatible with S3, over TLS. It records the actions that requests need in a policy.
type server struct {
	*httptest.Server

	options bucket.Options

	mu      sync.Mutex
	actions map[string]bool
	// refusal answers every request, if set.
	refusal http.HandlerFunc
}

func newServer(t *testing.T) *server {
	t.Helper()
	memory := s3mem.New()
	require.NoError(t, memory.CreateBucket("payloads"))
	s := &server{actions: map[string]bool{}}
	service := gofakes3.New(memory).Server()
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.actions[action(r)] = true
		refusal := s.refusal
		s.mu.Unlock()
		if refusal != nil {
			refusal(w, r)
			return
		}
		service.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	folder := t.TempDir()
	write := func(name string, content []byte) string {
		file := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(file, content, 0o600))
		return file
	}
	s.options = bucket.Options{
		Endpoint: s.URL, Region: "us-east-1", Bucket: "payloads", Prefix: "signalbox/", PathStyle: true,
		AccessKeyFile: write("access", []byte("key\n")), SecretKeyFile: write("secret", []byte("hidden\n")),
		CAFile: write("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})),
	}
	return s
}

// action returns the action of a policy that a request needs.
func action(r *http.Request) string {
	ofBucket := strings.Trim(r.URL.Path, "/") == "payloads"
	switch {
	case ofBucket && (r.Method == http.MethodGet && r.URL.Query().Get("list-type") == "2" || r.Method == http.MethodHead):
		return "s3:ListBucket"
	case !ofBucket && r.URL.RawQuery == "" || r.URL.Query().Get("x-id") != "":
		switch r.Method {
		case http.MethodGet:
			return "s3:GetObject"
		case http.MethodPut:
			return "s3:PutObject"
		case http.MethodDelete:
			return "s3:DeleteObject"
		}
	}
	return r.Method + " " + r.URL.String()
}

func (s *server) refuse(f http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = f
}

func (s *server) open(t *testing.T) payload.Store {
	t.Helper()
	// The processors may be busy with other tests for longer than a server waits.
	store, err := bucket.Open(s.options, time.Minute)
	require.NoError(t, err)
	return store
}

func TestConformance(t *testing.T) {
	t.Parallel()
	payloadtest.Run(t, func(t *testing.T) payloadtest.Open {
		s := newServer(t)
		return func() payload.Store { return s.open(t) }
	})
}

// policy is the one of docs/least-privilege.md.
type policy struct {
	Statement []struct {
		Effect   string
		Action   []string
		Resource string
	}
}

func TestDocumentedPolicyIsExact(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "least-privilege.md"))
	require.NoError(t, err)
	_, text, found := strings.Cut(string(page), "```json\n")
	require.True(t, found)
	text, _, _ = strings.Cut(text, "```")
	var p policy
	require.NoError(t, json.Unmarshal([]byte(text), &p))
	var granted []string
	for _, s := range p.Statement {
		require.Equal(t, "Allow", s.Effect)
		granted = append(granted, s.Action...)
	}

	s := newServer(t)
	store, ctx := s.open(t), t.Context()
	for range 2 { // unproven, then proven
		require.NoError(t, store.Writable(ctx))
		require.NoError(t, store.Put(ctx, "r1", "d1", []byte("value")))
	}
	_, found, err = store.Get(ctx, "r1", "d1")
	require.NoError(t, err)
	require.True(t, found)
	_, _, err = store.Stale(ctx, time.Hour, "", 1)
	require.NoError(t, err)
	_, err = store.DeleteRun(ctx, "r1")
	require.NoError(t, err)
	slices.Sort(granted)
	require.Equal(t, granted, slices.Sorted(maps.Keys(s.actions)))
}

// Names of objects are those of files in a folder, so that values can be copied from one to the other.
func TestObjectsAreBelowThePrefix(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	store := s.open(t)
	require.NoError(t, store.Put(t.Context(), "run/1", "00ff", []byte("value")))
	response, err := s.Client().Get(s.URL + "/payloads/signalbox/a7/run%252F1/00ff")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	s.options.Prefix = "another/"
	_, found, err := s.open(t).Get(t.Context(), "run/1", "00ff")
	require.NoError(t, err)
	require.False(t, found)
}

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	refused := func(status int, code string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(status)
			_, _ = w.Write([]byte("<Error><Code>" + code + "</Code><Message>No.</Message></Error>"))
		}
	}
	for want, change := range map[string]func(s *server){
		"the bucket does not exist: create it": func(s *server) { s.options.Bucket = "missing" },
		"No. (AccessDenied): grant the user of payloads.s3.access_key_file": func(s *server) {
			s.refuse(refused(http.StatusForbidden, "AccessDenied"))
		},
		"No. (SignatureDoesNotMatch): check payloads.s3.access_key_file": func(s *server) {
			s.refuse(refused(http.StatusForbidden, "SignatureDoesNotMatch"))
		},
		"No. (SlowDown)": func(s *server) {
			s.refuse(refused(http.StatusServiceUnavailable, "SlowDown"))
		},
		"connection refused":                      func(s *server) { s.Close() },
		"certificate signed by unknown authority": func(s *server) { s.options.CAFile = "" },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			change(s)
			store, ctx := s.open(t), t.Context()
			_, _, getErr := store.Get(ctx, "r1", "d1")
			_, _, staleErr := store.Stale(ctx, time.Hour, "", 1)
			for i, err := range []error{store.Put(ctx, "r1", "d1", nil), getErr, staleErr, store.Writable(ctx)} {
				require.ErrorContains(t, err, want, "operation %d", i)
				require.ErrorContains(t, err, `bucket "`+s.options.Bucket+`" at `+s.URL, "operation %d", i)
				require.True(t, apperror.Is(err, apperror.StoreUnavailable), "operation %d", i)
				require.NotContains(t, err.Error(), "hidden")
			}
		})
	}
}

// Each health check of a bucket with versions would leave two versions of an object.
func TestWritableWritesOnlyAfterAFailure(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	store, ctx := s.open(t), t.Context()
	wrote := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		found := s.actions["s3:PutObject"]
		clear(s.actions)
		return found
	}
	require.NoError(t, store.Writable(ctx))
	require.True(t, wrote(), "nothing was known before")
	require.NoError(t, store.Writable(ctx))
	require.False(t, wrote())
	s.refuse(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusInsufficientStorage)
		}
	})
	require.Error(t, store.Put(ctx, "r1", "d1", []byte("value")))
	wrote()
	require.Error(t, store.Writable(ctx), "the bucket exists, and is not writable")
	require.True(t, wrote())
	s.refuse(nil)
	require.NoError(t, store.Writable(ctx))
	require.True(t, wrote())
}

// A service that hangs does not hold a worker for longer than its patience.
func TestHungServiceIsLeft(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	release := make(chan struct{})
	defer close(release)
	s.refuse(func(http.ResponseWriter, *http.Request) { <-release })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	store := s.open(t)
	require.ErrorIs(t, store.Put(ctx, "r1", "d1", []byte("value")), context.DeadlineExceeded)
	_, _, err := store.Get(ctx, "r1", "d1")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestKeyFilesAreRequired(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	require.NoError(t, os.WriteFile(s.options.SecretKeyFile, []byte("\n"), 0o600))
	_, err := bucket.Open(s.options, payload.CallTimeout)
	require.ErrorContains(t, err, `secret" is empty: write the key into it`)
	s.options.CAFile = s.options.AccessKeyFile
	_, err = bucket.Open(s.options, payload.CallTimeout)
	require.ErrorContains(t, err, "holds no certificate in PEM form")
}
