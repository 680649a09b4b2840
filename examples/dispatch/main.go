//go:build unix

// Command dispatch is an example of a program that uses package dispatch and the libraries below it, and nothing else
// of Signalbox: a post office that accepts letters over HTTP and writes each to its addressee's mailbox. Any number of
// processes may run on one host. Exactly one of them owns the dispatcher, which delivers the letters; when that process
// is killed, another one takes over. Leases are in Redis, and the inbox is the program's own.
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
func letters() dispatch.Name { return dispatch.Name{Project: "post", TaskQueue: "letters"} }

type settings struct {
	name, listen, temporal, redis, prefix, data string
	ttl                                         time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.name, "name", "clerk", "name of this process")
	flag.StringVar(&s.listen, "listen", "127.0.0.1:8091", "address of the HTTP server, as host:port")
	flag.StringVar(&s.temporal, "temporal", "127.0.0.1:7233", "address of Temporal, as host:port")
	flag.StringVar(&s.redis, "redis", "",
		"Redis for the leases, as redis://host:port; without it only one process may run")
	flag.StringVar(&s.prefix, "prefix", "post:", "prefix of keys in Redis, the same for all processes")
	flag.StringVar(&s.data, "data", "post", "folder of the inbox and the mailboxes, the same for all processes")
	flag.DurationVar(&s.ttl, "ttl", 9*time.Second, "how long after a crash of the owner another process takes over")
	flag.Parse()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("process", s.name)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, log, s); err != nil {
		log.Error("The post office has failed", "error", err)
		os.Exit(1) //nolint:gocritic // the deferred stop only restores signal handling
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
		// A new ID after each start: a restarted process is not the one that crashed.
		ServerID: s.name + "-" + rand.Text()[:6], Client: manager.Client, Namespace: client.DefaultNamespace,
		// A process whose worker does not poll does not try to own the dispatcher.
		Polls:  func(dispatch.Name) bool { return manager.Polling("letters") },
		Leases: leases, Inbox: in, Timing: dispatch.Timing{TTL: s.ttl, Renew: s.ttl / 3}, Log: log,
	})
	if err != nil {
		return err
	}
	// The dispatcher's workflow and activity run on the program's own worker, which may also run other workflows.
	err = manager.Register("letters", func(c client.Client) (worker.Worker, error) {
		w := worker.New(c, letters().TaskQueue, worker.Options{})
		dispatchers.Register(w)
		return w, nil
	})
	if err != nil {
		return err
	}
	if err := dispatchers.Serve(letters()); err != nil {
		return err
	}
	overview, err := dispatch.NewOverview(dispatch.OverviewOptions{
		Client: manager.Client, Namespace: client.DefaultNamespace, Leases: leases, Inbox: in,
	})
	if err != nil {
		return err
	}
	// Neither call waits: while Temporal or Redis is unavailable, letters are accepted, and delivered later.
	if err := errors.Join(manager.Start(ctx), dispatchers.Start(ctx)); err != nil {
		return err
	}
	office := &postOffice{inbox: in, dispatchers: dispatchers, overview: overview, log: log}
	server := &http.Server{Addr: s.listen, Handler: office.routes(), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	log.Info("The post office is open", "address", s.listen)
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	// The dispatcher is given up while the connection is still up: another process takes it over within milliseconds.
	budget, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(budget), dispatchers.Stop(budget), manager.Stop(budget))
}

// openLeases returns the lease store. Leases in memory are visible to one process only.
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

// postOffice handles the HTTP requests.
type postOffice struct {
	inbox       *filebox.Inbox
	dispatchers *dispatch.Dispatchers
	overview    *dispatch.Overview
	log         *slog.Logger
}

func (p *postOffice) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /letters", p.accept)
	mux.HandleFunc("GET /dispatcher", p.show)
	return mux
}

// accept accepts a letter. In any state of Temporal, Redis and the dispatcher, the letter is in the inbox before the
// answer is sent.
func (p *postOffice) accept(w http.ResponseWriter, r *http.Request) {
	var l letter
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&l); err != nil || !isFileName(l.ID) ||
		!isFileName(l.To) {
		answer(w, http.StatusBadRequest,
			"send a letter as JSON; id and to must consist of lower-case letters, digits and hyphens")
		return
	}
	wake, err := p.inbox.Publish(letters(), l.To, l) // letters to one addressee are delivered in order
	if err != nil {
		answer(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	if wake {
		// The answer does not wait for it. If it fails, the delivery is only delayed: the owner checks for parked dispatchers
		// every two seconds.
		go func(ctx context.Context) {
			if err := p.dispatchers.Ring(ctx, letters()); err != nil {
				p.log.Warn("Could not wake the dispatcher; its owner will within two seconds", "error", err)
			}
		}(context.WithoutCancel(r.Context()))
	}
	answer(w, http.StatusAccepted, l)
}

// show reports the owner of the dispatcher, and its progress.
func (p *postOffice) show(w http.ResponseWriter, r *http.Request) {
	d, err := p.overview.Get(r.Context(), letters())
	if err != nil {
		answer(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	body := struct {
		ID, Status, Owner string
		Lease             lease.State
		Epoch, Pending    int64
	}{ID: d.WorkflowID, Status: string(d.Status)}
	if d.Lease != nil {
		body.Lease, body.Owner, body.Epoch = d.Lease.State, d.Lease.Owner.Holder, d.Lease.Owner.Epoch
	}
	if d.Progress != nil {
		body.Pending = d.Progress.Pending
	}
	answer(w, http.StatusOK, body)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // it fails only if the caller has disconnected
}

// letter is a letter. The sender chooses its ID.
type letter struct {
	ID   string `json:"id"`
	To   string `json:"to"`
	Text string `json:"text"`
}

// isFileName reports whether a word can be the name of a file.
func isFileName(word string) bool {
	for _, c := range word {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return word != "" && len(word) <= 100
}

// mailboxes is a folder with a folder for each addressee and a file for each letter.
type mailboxes struct {
	folder string
	log    *slog.Logger
}

// deliver makes one attempt to deliver a letter. There may be several attempts that succeed: by two owners one after
// another, or because a process was killed before it reported the first one. The letter's ID makes delivery idempotent.
func (m mailboxes) deliver(_ context.Context, _ inbox.Name, d inbox.Delivery) inbox.Outcome {
	var l letter
	item, _ := d.Item.(json.RawMessage) // the type that the inbox returns
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

// put writes a letter atomically, and reports whether it was there already.
func (m mailboxes) put(l letter) (again bool, err error) {
	box := filepath.Join(m.folder, l.To)
	if err := os.MkdirAll(box, 0o700); err != nil {
		return false, err
	}
	draft, err := os.CreateTemp(m.folder, "draft-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.Remove(draft.Name()) }() // the linked name stays
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
