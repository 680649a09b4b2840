package app

import (
	"os"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/secret"
	"github.com/signalbox-dev/signalbox/internal/secret/provider"
)

// secrets returns the provider of this process's secrets.
func secrets(cfg config.Secrets) secret.Provider {
	return provider.New(provider.Options{
		Dir: cfg.Dir, Prefix: cfg.EnvPrefix, Lookup: os.LookupEnv, Command: cfg.Command, Timeout: cfg.Timeout, Keep: cfg.Cache,
	})
}
