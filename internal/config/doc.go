// Package config loads the settings of a process: from one YAML file, and a flag and a variable for each key.
//
// Every key has one name in three spellings: `temporal.address` in the file, `--temporal-address` as a
// flag, `SIGNALBOX_TEMPORAL_ADDRESS` as a variable. A flag wins over a variable, a variable over the
// file, the file over a Layer (Temporal's own environment configuration), a layer over the default.
//
//	config.BindFlags(flags)
//	cfg, err := config.Load(config.Options{Flags: flags, Env: config.NewEnvironment(os.Environ())})
//
// The error of Load is a Violations: every violation of every source at once, each with the key, where its
// value came from and what to do. Unknown keys are violations. Secrets must not be in the file or on the
// command line: a DSN refers to them as ${env:NAME} or ${file:/path}.
//
// The package opens no connection and starts nothing; it reads the files it is pointed at.
package config

//go:generate go run ../generate configuration ../../docs/reference/configuration.md
