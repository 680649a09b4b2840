//go:build unix

// Command dispatch is a small post office of somebody else's: it takes letters over HTTP and puts each into its addressee's mailbox.
// Any number of processes may run on one host; exactly one of them owns the dispatcher that has the letters delivered, and when it is
// killed, another takes over. All that it uses for that is package dispatch, leases in Redis, and an inbox of its own.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/dispatch"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/examples/dispatch/filebox"
	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/redislease"
)

// letters names the dispatcher. It is the same in every process, and so is its workflow ID, dispatcher-post-letters.
var letters = dispatch.Name{Project: "post", TaskQueue: "letters"}

type settings struct {
	name, listen, temporal, redis, prefix, data string
	ttl                                         time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.name, "name", "clerk", "what to call this process")
	flag.StringVar(&s.listen, "listen", "127.0.0.1:8091", "where to take letters, as host:port")
	flag.StringVar(&s.temporal, "temporal", "127.0.0.1:7233", "where Temporal is, as host:port")
	flag.StringVar(&s.redis, "redis", "", "where leases are, as redis://host:port; without it this must be the only process")
	flag.StringVar(&s.prefix, "prefix", "post:", "what keys in Redis begin with, the same for all processes")
	flag.StringVar(&s.data, "data", "post", "the folder of the inbox and the mailboxes, the same for all processes")
	flag.DurationVar(&s.ttl, "ttl", 15*time.Second, "how long after a crash of the owner another takes over")
	flag.Parse()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("process", s.name)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, log, s); err != nil {
		log.Error("The post office has failed", "error", err)
		os.Exit(1) //nolint:gocritic // stop only gives the signals back, which the exit does too
	}
}

// serve runs the post office until ctx ends.
func serve(ctx context.Context, log *slog.Logger, s settings) error {
	box := mailboxes{folder: filepath.Join(s.data, "mailboxes"), log: log}
	if err := os.MkdirAll(box.folder, 0o700); err != nil {
		return err
	}
	in, err := filebox.New(filepath.Join(s.data, "inbox.json"), box.deliver)
	if err != nil {
		return err
	}
	leases, closeLeases, err := openLeases(s.redis, s.prefix)
	if err != nil {
		return err
	}
	defer closeLeases()
	manager, err := conn.New(conn.Options{Client: client.Options{HostPort: s.temporal}, Logger: log})
	if err != nil {
		return err
	}
	dispatchers, err := dispatch.New(dispatch.Options{
		// Another one after each start: a process that comes back is not the one that crashed.
		ServerID: s.name + "-" + rand.Text()[:6], Client: manager.Client, Namespace: client.DefaultNamespace,
		// Who does not come so far as to work for the dispatcher leaves it to others.
		Polls:  func(dispatch.Name) bool { return manager.Polling("letters") },
		Leases: leases, Inbox: in, Timing: dispatch.Timing{TTL: s.ttl, Renew: s.ttl / 3}, Log: log,
	})
	if err != nil {
		return err
	}
	// The dispatcher's workflow and activity run on the program's own worker, beside whatever else that does.
	err = manager.Register("letters", func(c client.Client) (worker.Worker, error) {
		w := worker.New(c, letters.TaskQueue, worker.Options{})
		dispatchers.Register(w)
		return w, nil
	})
	if err != nil {
		return err
	}
	if err := dispatchers.Serve(letters); err != nil {
		return err
	}
	overview, err := dispatch.NewOverview(dispatch.OverviewOptions{
		Client: manager.Client, Namespace: client.DefaultNamespace, Leases: leases, Inbox: in,
	})
	if err != nil {
		return err
	}
	// Neither waits for anything: with Temporal or Redis away, letters are accepted, and delivered later.
	if err := errors.Join(manager.Start(ctx), dispatchers.Start(ctx)); err != nil {
		return err
	}
	office := &counter{inbox: in, dispatchers: dispatchers, overview: overview, log: log}
	server := &http.Server{Addr: s.listen, Handler: office.routes(), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	log.Info("The post office is open", "address", s.listen)
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	// What this process owns is given up while the connection still serves that: another adopts it within milliseconds.
	budget, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(budget), dispatchers.Stop(budget), manager.Stop(budget))
}

// openLeases returns where ownership is kept. Leases in memory are seen by one process alone.
func openLeases(url, prefix string) (leases lease.Store, closeLeases func(), err error) {
	if url == "" {
		return lease.NewMemory(), func() {}, nil
	}
	store, err := redislease.Open(redislease.Options{URL: url, Prefix: prefix})
	if err != nil {
		return nil, nil, err
	}
	return store, func() { _ = store.Close() }, nil
}

// counter is where letters are handed in.
type counter struct {
	inbox       *filebox.Inbox
	dispatchers *dispatch.Dispatchers
	overview    *dispatch.Overview
	log         *slog.Logger
}

func (c *counter) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /letters", c.take)
	mux.HandleFunc("GET /dispatcher", c.show)
	return mux
}

// take accepts a letter. Whatever is the matter with Temporal, Redis and the dispatcher, it is in the inbox when this answers.
func (c *counter) take(w http.ResponseWriter, r *http.Request) {
	var l letter
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&l); err != nil || !plain(l.ID) || !plain(l.To) {
		answer(w, http.StatusBadRequest, "send a letter as JSON, with an id and whom it is to, in letters and digits")
		return
	}
	wake, err := c.inbox.Publish(letters, l.To, l) // letters to one addressee arrive in their order
	if err != nil {
		answer(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	if wake {
		// The answer does not wait for it, and a ring that is not heard is no harm: the owner looks for sleepers every two seconds.
		go func(ctx context.Context) {
			if err := c.dispatchers.Ring(ctx, letters); err != nil {
				c.log.Warn("Doorbell not heard; the owner will look", "error", err)
			}
		}(context.WithoutCancel(r.Context()))
	}
	answer(w, http.StatusAccepted, l)
}

// show tells who owns the dispatcher, and how far it has come.
func (c *counter) show(w http.ResponseWriter, r *http.Request) {
	d, err := c.overview.Get(r.Context(), letters)
	if err != nil {
		answer(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	told := struct {
		ID, Status, Owner string
		Lease             lease.State
		Epoch, Pending    int64
	}{ID: d.WorkflowID, Status: string(d.Status)}
	if d.Lease != nil {
		told.Lease, told.Owner, told.Epoch = d.Lease.State, d.Lease.Owner.Holder, d.Lease.Owner.Epoch
	}
	if d.Progress != nil {
		told.Pending = d.Progress.Pending
	}
	answer(w, http.StatusOK, told)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // it fails when the caller has left
}

// letter is what is delivered. Its ID is the sender's.
type letter struct {
	ID   string `json:"id"`
	To   string `json:"to"`
	Text string `json:"text"`
}

// plain tells whether a word can be the name of a file.
func plain(word string) bool {
	for _, c := range word {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return word != "" && len(word) <= 100
}

// mailboxes are a folder for each addressee, with a file for each letter.
type mailboxes struct {
	folder string
	log    *slog.Logger
}

// deliver makes one attempt. There may be two of one letter, by two owners one after another or when a process is killed before it
// has said that it is done. The letter's ID makes the second one find what the first one did.
func (m mailboxes) deliver(_ context.Context, _ inbox.Name, d inbox.Delivery) inbox.Outcome {
	var l letter
	item, _ := d.Item.(json.RawMessage) // as the inbox hands it out
	if err := json.Unmarshal(item, &l); err != nil {
		return inbox.Outcome{Result: inbox.Dead, Reason: fmt.Sprintf("not a letter: %v", err)}
	}
	again, err := m.put(l)
	if err != nil {
		m.log.Warn("Letter not delivered; trying again", "letter", l.ID, "attempt", d.Attempt, "error", err)
		return inbox.Outcome{Result: inbox.Retry, After: time.Second, Reason: err.Error()}
	}
	m.log.Info("Letter delivered", "letter", l.ID, "to", l.To, "attempt", d.Attempt, "again", again)
	return inbox.Outcome{Result: inbox.Done}
}

// put writes a letter as a whole or not at all, and tells whether it was there already.
func (m mailboxes) put(l letter) (again bool, err error) {
	box := filepath.Join(m.folder, l.To)
	if err := os.MkdirAll(box, 0o700); err != nil {
		return false, err
	}
	draft, err := os.CreateTemp(m.folder, "draft-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.Remove(draft.Name()) }() // its other name stays
	_, err = draft.WriteString(l.Text)
	if err := errors.Join(err, draft.Close()); err != nil {
		return false, err
	}
	err = os.Link(draft.Name(), filepath.Join(box, l.ID))
	if errors.Is(err, os.ErrExist) {
		return true, nil
	}
	return false, err
}
