// Package clientconfig converts the settings of Temporal and of Redis to the options of their clients, and checks the
// files that they name.
//
//	layers := []config.Layer{clientconfig.TemporalLayer(time.Now), clientconfig.RedisLayer(time.Now)}
//	cfg, err := config.Load(config.Options{Flags: flags, Env: env, Layers: layers})
//	options, err := clientconfig.Temporal(cfg.Temporal)
//	lease, err := clientconfig.Redis(cfg.Redis)
//
// Files are rotated while a server runs. Passwords, API keys and client certificates are read again when they are used
// (per connection, per call, per handshake); authorities are read once. The owner of a connection to Temporal compares
// TemporalIdentity regularly, and creates a new client with ReloadTemporal when it differs. A file that cannot be used
// prevents a server from starting; one that becomes unusable later is an error of ReloadTemporal and of the next
// handshake, which can be retried.
//
// It is a package of its own so that package config, and with it the command line, links no client. It opens no
// connection.
package clientconfig
