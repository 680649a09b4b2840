package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/processor"
	"github.com/signalbox-dev/signalbox/internal/sealingkey"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// checkTimeout bounds the check of each service.
const checkTimeout = 10 * time.Second

// CheckServices connects to the database and to the store of payloads, and reports why a server with the configuration
// does not start, or cannot store values. note receives what could not be checked, and what makes a server slow on this
// machine.
func CheckServices(ctx context.Context, cfg *config.Config, note func(format string, args ...any)) config.Violations {
	checkProcessors(os.DirFS("/"), note)
	refused, err := checkKeys(ctx, cfg)
	if err != nil {
		note("whether a sealing key is missing that something needs is unknown: %v", err)
	}
	return append(refused, CheckPayloads(ctx, cfg)...)
}

// checkProcessors notes that the control group of this process allows less than a server requires. root is the file
// system with /proc and /sys.
func checkProcessors(root fs.FS, note func(format string, args ...any)) {
	now := processor.Read(root, time.Now())
	if s := processor.Between(now, now, nil); s.BelowMinimum() {
		note("the control group allows %s, and a server requires %s; raise its limit, or work takes longer",
			processor.Amount(*s.Limit), processor.Amount(processor.Minimum))
	}
}

// checkKeys compares the keys of the configuration with those that sealed values. A database without records of keys
// has no violations.
func checkKeys(ctx context.Context, cfg *config.Config) (config.Violations, error) {
	ring, err := cfg.Encryption.Ring()
	if err != nil { // the configuration reports it
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if sqldb.Driver(cfg.Store.Driver) == sqldb.SQLite {
		file, _, _ := strings.Cut(cfg.Store.DSN.Reveal(), "?")
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			return nil, nil // a server creates it
		}
	}
	opened, err := store.Open(ctx, store.Options{Driver: sqldb.Driver(cfg.Store.Driver), DSN: cfg.Store.DSN.Reveal()})
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Stop(ctx) }()
	facts := opened.Facts(ctx)
	if facts.Error != "" {
		return nil, errors.New(facts.Error)
	}
	if facts.Schema < facts.Required {
		return nil, nil // a server migrates it, or does not start for that reason
	}
	err = sealingkey.Check(ctx, opened, ring)
	if refused, is := errors.AsType[*sealingkey.RefusedError](err); is {
		var violations config.Violations
		for _, p := range refused.Violations {
			violations = append(violations, config.Violation{Path: "encryption.keys", Message: p})
		}
		return violations, nil
	}
	return nil, err
}
