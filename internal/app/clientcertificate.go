package app

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/config/clientconfig"
	"github.com/signalbox-dev/signalbox/internal/health"
)

// A certificate is ending in its last endsSoon, or in the last quarter of its lifetime if that is shorter: certificates
// with a lifetime of hours are renewed only hours before they expire.
const (
	endsSoon = 14 * 24 * time.Hour
	quarter  = 4
)

// The states of a certificate.
const (
	certificateValid      = "valid"
	certificateEnding     = "ending"
	certificateExpired    = "expired"
	certificateUnreadable = "unreadable"
)

// clientCertificate is the certificate presented to Temporal. Its file is read on every query and on every TLS
// handshake.
type clientCertificate struct {
	temporal config.Temporal
	now      func() time.Time
	log      *slog.Logger

	mu    sync.Mutex
	state string // last reported state; changes are logged
}

// used reports whether a client certificate is configured, readable or not.
func (c *clientCertificate) used() bool {
	found, err := clientconfig.TemporalCertificate(c.temporal)
	return found != nil || err != nil
}

// ends returns when the certificate expires; false if there is none or it cannot be read.
func (c *clientCertificate) ends() (time.Time, bool) {
	found, err := clientconfig.TemporalCertificate(c.temporal)
	if found == nil || err != nil {
		return time.Time{}, false
	}
	return found.NotAfter, true
}

// condition returns the state of the certificate for the process's health.
func (c *clientCertificate) condition() health.Condition {
	found, err := clientconfig.TemporalCertificate(c.temporal)
	now := certificateCondition(found, err, c.now())
	c.mu.Lock()
	defer c.mu.Unlock()
	switch before := c.state; {
	case before == now.State:
	case now.Err != nil:
		c.log.Warn("Temporal client certificate needs to be renewed", "state", now.State, "error", now.Err)
	case before != "":
		c.log.Info("Temporal client certificate is valid again", "expires", found.NotAfter)
	}
	c.state = now.State
	return now
}

// renewalDue returns from when on a certificate is ending.
func renewalDue(c *x509.Certificate) time.Time {
	return c.NotAfter.Add(-min(endsSoon, c.NotAfter.Sub(c.NotBefore)/quarter))
}

// certificateCondition derives the condition from a certificate, or from the error of reading it.
func certificateCondition(found *x509.Certificate, err error, now time.Time) health.Condition {
	c := health.Condition{State: certificateValid, Usable: true}
	if err == nil && found == nil {
		err = errors.New("there is none")
	}
	if err != nil {
		c.State, c.Since, c.Err = certificateUnreadable, now,
			fmt.Errorf("the client certificate for Temporal cannot be read: %w; see temporal.tls", err)
		return c
	}
	c.Since = found.NotBefore
	ending := renewalDue(found)
	ends := found.NotAfter.UTC().Format(time.RFC3339)
	switch {
	case !now.Before(found.NotAfter):
		c.State, c.Since, c.Err = certificateExpired, found.NotAfter,
			fmt.Errorf("the client certificate for Temporal expired at %s; renew the file at temporal.tls.cert_file", ends)
	case !now.Before(ending):
		c.State, c.Since, c.Err = certificateEnding, ending,
			fmt.Errorf("the client certificate for Temporal expires at %s; renew the file at temporal.tls.cert_file", ends)
	}
	return c
}
