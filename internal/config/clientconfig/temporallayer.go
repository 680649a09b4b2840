package clientconfig

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/signalbox-dev/signalbox/internal/config"
)

// TemporalLayer applies what every Temporal tool reads (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, the
// TEMPORAL_TLS_* variables, and the profile of TEMPORAL_PROFILE in temporal.toml), which Signalbox settings override,
// and checks the credentials; now is the clock for the validity of certificates. It ignores the remote codec of a
// profile: a worker would call it for every payload.
func TemporalLayer(now func() time.Time) config.Layer {
	return config.Layer{Apply: apply, Check: func(cfg *config.Config) config.Violations {
		return checkTemporal(cfg.Temporal, now())
	}}
}

func apply(env config.Environment, cfg *config.Config) (map[string]string, error) {
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{
		EnvLookup:   env,
		DisableFile: !hasConfigFolder(env),
	})
	if err != nil {
		return nil, fmt.Errorf("read Temporal's own configuration: %w; correct it or unset TEMPORAL_CONFIG_FILE and "+
			"TEMPORAL_PROFILE", err)
	}
	l := layer{env: env, sources: map[string]string{}}
	l.profile(profile, &cfg.Temporal)
	return l.sources, nil
}

// hasConfigFolder reports whether the environment names a configuration folder. Without one, as in tests, the file of
// the process's user is not read.
func hasConfigFolder(env config.Environment) bool {
	for _, name := range []string{"TEMPORAL_CONFIG_FILE", "XDG_CONFIG_HOME", "HOME", "AppData"} {
		if env[name] != "" {
			return true
		}
	}
	return false
}

type layer struct {
	env     config.Environment
	sources map[string]string
}

func (l *layer) profile(profile envconfig.ClientConfigProfile, t *config.Temporal) {
	l.set(&t.Address, profile.Address, "temporal.address", "TEMPORAL_ADDRESS")
	l.set(&t.Namespace, profile.Namespace, "temporal.namespace", "TEMPORAL_NAMESPACE")
	t.Profile.APIKey = config.Secret(profile.APIKey)
	t.Profile.Authority = profile.Authority
	t.Profile.Headers = profile.GRPCMeta
	if profile.TLS == nil {
		return
	}
	tls := profile.TLS
	l.set(&t.TLS.CertFile, tls.ClientCertPath, "temporal.tls.cert_file", "TEMPORAL_TLS_CLIENT_CERT_PATH")
	l.set(&t.TLS.KeyFile, tls.ClientKeyPath, "temporal.tls.key_file", "TEMPORAL_TLS_CLIENT_KEY_PATH")
	l.set(&t.TLS.CAFile, tls.ServerCACertPath, "temporal.tls.ca_file", "TEMPORAL_TLS_SERVER_CA_CERT_PATH")
	l.set(&t.TLS.ServerName, tls.ServerName, "temporal.tls.server_name", "TEMPORAL_TLS_SERVER_NAME")
	if tls.Disabled {
		t.TLS.Disabled = true
		l.sources["temporal.tls.disabled"] = l.source("TEMPORAL_TLS")
	}
	t.Profile.TLS = !tls.Disabled
	t.Profile.CertPEM = tls.ClientCertData
	t.Profile.KeyPEM = config.Secret(tls.ClientKeyData)
	t.Profile.CAPEM = tls.ServerCACertData
	t.Profile.DisableHostVerification = tls.DisableHostVerification
}

// set copies a value; an empty variable of Temporal has no effect.
func (l *layer) set(field *string, value, path, variable string) {
	if value == "" {
		return
	}
	*field = value
	l.sources[path] = l.source(variable)
}

func (l *layer) source(variable string) string {
	if l.env[variable] != "" {
		return variable
	}
	return "Temporal's profile"
}
