package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine"
)

// fakeSource stores canonical documents by hash, and counts the reads.
type fakeSource struct {
	mu    sync.Mutex
	texts map[string][]byte
	err   error
	asked int
	hold  chan struct{} // if set, a call waits for it
}

func (s *fakeSource) Document(ctx context.Context, hash string) ([]byte, error) {
	s.mu.Lock()
	s.asked++
	text, err, hold := s.texts[hash], s.err, s.hold
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err == nil && text == nil {
		err = fmt.Errorf("no document %q", hash)
	}
	return text, err
}

// Resources returns texts by their hashes; those that are not there are missing from the result.
func (s *fakeSource) Resources(_ context.Context, hashes []string) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string][]byte{}
	for _, hash := range hashes {
		found[hash] = s.texts[hash]
	}
	return found, s.err
}

func (s *fakeSource) put(t *testing.T, source string) string {
	t.Helper()
	return s.putWith(t, source, nil)
}

// putWith puts a document with the texts that it refers to, which read returns by their URIs.
func (s *fakeSource) putWith(t *testing.T, source string, read func(uri string) []byte) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts == nil {
		s.texts = map[string][]byte{}
	}
	resources := dsl.NewResources()
	for {
		doc, problems := dsl.Parse([]byte(source), dsl.WithResources(resources))
		missing := resources.Missing()
		if len(missing) == 0 {
			require.False(t, problems.HasErrors(), problems)
			s.texts[doc.Hash()] = doc.Canonical()
			return doc.Hash()
		}
		for _, reference := range missing {
			content := read(reference.URI)
			resources.Add(reference.URI, content)
			s.texts[dsl.ContentHash(content)] = content
		}
	}
}

func source(value int) string {
	return fmt.Sprintf("document: {dsl: 1.0.3, namespace: a, name: b, version: 1.0.0}\ndo: [{s: {set: {n: %d}}}]", value)
}

func TestDocumentsAreLoadedOnce(t *testing.T) {
	t.Parallel()
	s := &fakeSource{}
	one, two := s.put(t, source(1)), s.put(t, source(2))
	d := engine.NewDocuments(s, dsl.DefaultLimits())
	first, err := d.Document(t.Context(), one)
	require.NoError(t, err)
	require.Equal(t, one, first.Hash())
	again, err := d.Document(t.Context(), one)
	require.NoError(t, err)
	require.Same(t, first, again)
	other, err := d.Document(t.Context(), two)
	require.NoError(t, err)
	require.Equal(t, two, other.Hash())
	require.Equal(t, 2, s.asked)
}

// A document is compiled with the resources that are pinned in it, and with no others.
func TestDocumentsHaveTheirResources(t *testing.T) {
	t.Parallel()
	text, function := "document: {dsl: 1.0.3, namespace: a, name: b, version: 1.0.0}\ndo: [{s: {call: f.yaml}}]",
		[]byte("set: {n: 1}")
	resources := dsl.NewResources()
	resources.Add("f.yaml", function)
	doc, violations := dsl.Parse([]byte(text), dsl.WithResources(resources))
	require.Empty(t, violations)
	s := &fakeSource{texts: map[string][]byte{doc.Hash(): doc.Canonical(), dsl.ContentHash(function): function}}
	loaded, err := engine.NewDocuments(s, dsl.DefaultLimits()).Document(t.Context(), doc.Hash())
	require.NoError(t, err)
	require.Equal(t, doc.Hash(), loaded.Hash())
	require.Equal(t, doc.Resources, loaded.Resources)

	s.texts[dsl.ContentHash(function)] = []byte("set: {n: 2}")
	_, err = engine.NewDocuments(s, dsl.DefaultLimits()).Document(t.Context(), doc.Hash())
	require.ErrorContains(t, err, "the store was changed by hand")
}

func TestDocumentsAreLoadedOnceForManyAtOnce(t *testing.T) {
	t.Parallel()
	s := &fakeSource{hold: make(chan struct{})}
	hash := s.put(t, source(1))
	d := engine.NewDocuments(s, dsl.DefaultLimits())
	const callers = 20
	docs := make([]*dsl.Document, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			var err error
			if docs[i], err = d.Document(t.Context(), hash); err != nil {
				t.Error(err)
			}
		})
	}
	close(s.hold)
	group.Wait()
	for _, doc := range docs {
		require.Same(t, docs[0], doc, "all run the same")
	}
}

func TestDocumentLoadOutlivesItsFirstCaller(t *testing.T) {
	t.Parallel()
	s := &fakeSource{hold: make(chan struct{})}
	hash := s.put(t, source(1))
	d := engine.NewDocuments(s, dsl.DefaultLimits())
	leaving, leave := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := d.Document(leaving, hash)
		first <- err
	}()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.asked == 1
	}, time.Minute, time.Millisecond)
	go func() {
		_, err := d.Document(t.Context(), hash)
		second <- err
	}()
	leave()
	require.ErrorIs(t, <-first, context.Canceled, "who leaves does not wait")
	close(s.hold)
	require.NoError(t, <-second)
	_, err := d.Document(t.Context(), hash)
	require.NoError(t, err)
	require.Equal(t, 1, s.asked, "what was asked for once is kept")
}

func TestMissingDocumentsAreReadAgain(t *testing.T) {
	t.Parallel()
	s := &fakeSource{err: errors.New("the store is away")}
	hash := s.put(t, source(1))
	d := engine.NewDocuments(s, dsl.DefaultLimits())
	_, err := d.Document(t.Context(), hash)
	require.ErrorIs(t, err, s.err)
	s.err = nil
	_, err = d.Document(t.Context(), "sha256:none")
	require.ErrorContains(t, err, `"sha256:none"`)
	_, err = d.Document(t.Context(), hash)
	require.NoError(t, err, "failures are not cached")
}

func TestDocumentsWithAWrongHashAreRejected(t *testing.T) {
	t.Parallel()
	s := &fakeSource{}
	hash, other := s.put(t, source(1)), s.put(t, source(2))
	s.texts[hash] = s.texts[other]
	d := engine.NewDocuments(s, dsl.DefaultLimits())
	for range 2 {
		_, err := d.Document(t.Context(), hash)
		require.ErrorContains(t, err, "changed by hand")
		require.ErrorContains(t, err, hash)
		require.ErrorContains(t, err, other)
	}
	s.texts[hash] = []byte(`{"document":`)
	_, err := d.Document(t.Context(), hash)
	require.ErrorContains(t, err, "compiling the stored document")
}

// TestDocumentsOfNarrowerLimitsAreReadable: published documents must run although the limits have been reduced since.
func TestDocumentsOfNarrowerLimitsAreReadable(t *testing.T) {
	t.Parallel()
	s := &fakeSource{}
	hash := s.put(t, source(1))
	limits := dsl.DefaultLimits()
	limits.MaxBytes = len(s.texts[hash])/4 + 1
	_, err := engine.NewDocuments(s, limits).Document(t.Context(), hash)
	require.NoError(t, err)
}

// TestDocumentsOutgrowTheCache loads more documents than the cache holds: all are still found.
func TestDocumentsOutgrowTheCache(t *testing.T) {
	t.Parallel()
	s := &fakeSource{}
	d := engine.NewDocuments(s, dsl.DefaultLimits())
	var hashes []string
	for i := range 1001 {
		hash := s.put(t, source(i))
		hashes = append(hashes, hash)
		_, err := d.Document(t.Context(), hash)
		require.NoError(t, err)
	}
	require.Equal(t, 1001, s.asked)
	_, err := d.Document(t.Context(), hashes[1000])
	require.NoError(t, err)
	require.Equal(t, 1001, s.asked, "the newest is kept")
	doc, err := d.Document(t.Context(), hashes[0])
	require.NoError(t, err)
	require.Equal(t, hashes[0], doc.Hash())
	require.Equal(t, 1002, s.asked, "the oldest made room")
}
