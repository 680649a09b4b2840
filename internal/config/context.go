package config

import "context"

type contextKey struct{}

// WithContext returns a context that carries the configuration. It must not be changed afterwards.
func WithContext(ctx context.Context, cfg *Config) context.Context {
	return context.WithValue(ctx, contextKey{}, cfg)
}

// FromContext returns the configuration the context carries, or the defaults where it carries none.
func FromContext(ctx context.Context) *Config {
	if cfg, ok := ctx.Value(contextKey{}).(*Config); ok {
		return cfg
	}
	return Default()
}
