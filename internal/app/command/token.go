package command

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/cli/tokencmd"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
	"github.com/signalbox-dev/signalbox/internal/token"
)

// Bootstrap creates the first token directly in the store: `signalbox token create --bootstrap`. One process at a time
// does it.
func Bootstrap(env config.Environment, layers []config.Layer) tokencmd.Bootstrap {
	return func(ctx context.Context, flags *pflag.FlagSet, w tokencmd.Wanted) (made tokencmd.Made, err error) {
		cfg, err := config.Load(config.Options{Flags: flags, Env: env, Layers: layers})
		if err != nil {
			return made, err
		}
		s, err := store.Open(ctx, store.Options{
			Driver: sqldb.Driver(cfg.Store.Driver), DSN: cfg.Store.DSN.Reveal(), AutoMigrate: cfg.Store.AutoMigrate,
		})
		if err != nil {
			return made, err
		}
		defer func() { err = errors.Join(err, s.Stop(context.WithoutCancel(ctx))) }()
		if err := s.Start(ctx); err != nil {
			return made, err
		}
		ran, err := s.Exclusive(ctx, "token bootstrap", func(ctx context.Context) error {
			made, err = bootstrap(ctx, s, w)
			return err
		})
		if err == nil && !ran {
			return made, exit.Errorf(exit.Refused, "create token %q: another one is being created; try again", w.Name)
		}
		return made, err
	}
}

func bootstrap(ctx context.Context, s *store.Store, w tokencmd.Wanted) (tokencmd.Made, error) {
	roles := map[string]auth.Role{}
	for project, role := range w.Roles {
		roles[project] = auth.Role(role)
	}
	tokens := token.NewService(s.Tokens(), s, token.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	t, secret, err := tokens.Bootstrap(ctx, token.Request{Name: w.Name, Roles: roles, ExpiresAt: w.ExpiresAt}, w.Force)
	if f, ok := apperror.From(err); ok {
		code := exit.Failed
		switch f.Class { //nolint:exhaustive // all other classes mean failure
		case apperror.Exists:
			code = exit.Refused
		case apperror.NotFound:
			code = exit.NotFound
		case apperror.Unavailable:
			code = exit.Unavailable
		}
		return tokencmd.Made{}, exit.Errorf(code, "create token %q: %w [%s]", w.Name, err, f.Reason)
	}
	return tokencmd.Made{ID: t.ID, Secret: secret, Creator: t.Creator, CreatedAt: t.CreatedAt}, err
}
