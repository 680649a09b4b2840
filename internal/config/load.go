package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"

	"github.com/spf13/pflag"

	"github.com/signalbox-dev/signalbox/internal/config/schema"
	"github.com/signalbox-dev/signalbox/internal/secretfile"
)

// FileFlag and FileVariable are the names of the flag and the variable for the path of the YAML file.
const (
	FileFlag     = "config"
	FileVariable = Prefix + "CONFIG"
)

// KeyAnnotation marks the flags of keys, with the key's path, for the documentation of commands.
const KeyAnnotation = "signalbox.dev/key"

// Layer adds settings from another package, such as Temporal's own configuration.
type Layer struct {
	// Apply, unless nil, sets values that override the defaults but not the file. It returns the source of each key it
	// set, by the key's path.
	Apply func(env Environment, cfg *Config) (sources map[string]string, err error)
	// Check reports violations of the final values that this package does not check. Violations of keys that have
	// one already are dropped. Those without a source get their key's.
	Check func(cfg *Config) Violations
}

// Options are the sources of Load.
type Options struct {
	Flags  *pflag.FlagSet // bound by BindFlags; nil: no flags
	Env    Environment    // nil: no variables
	Layers []Layer        // lowest first
}

// flagValue stores a flag's text until Load parses it, so that an invalid flag is reported with all other violations.
type flagValue struct {
	text string
	kind string
}

func (v *flagValue) String() string { return v.text }
func (v *flagValue) Type() string   { return v.kind }
func (v *flagValue) Set(text string) error {
	v.text = text
	return nil
}

// BindFlags adds --config and one flag for each key.
func BindFlags(flags *pflag.FlagSet) {
	flags.String(FileFlag, "", "YAML `file` to read ("+FileVariable+")")
	for _, k := range schema.Of(Default()).Keys {
		value := &flagValue{text: k.Default, kind: k.TypeName()}
		flag := flags.VarPF(value, k.Flag(), "", fmt.Sprintf("%s (%s)", k.Doc, k.Variable()))
		flag.Annotations = map[string][]string{KeyAnnotation: {k.Path}}
		if k.TypeName() == "bool" {
			flag.NoOptDefVal = "true"
		}
	}
}

// BindUnlisted is BindFlags for commands that need little of the configuration: the help lists only --config.
func BindUnlisted(flags *pflag.FlagSet) {
	BindFlags(flags)
	flags.Lookup(FileFlag).Usage += "; each key in it is a flag, too: \"signalbox server --help\" lists them"
	flags.VisitAll(func(flag *pflag.Flag) {
		if _, isKey := flag.Annotations[KeyAnnotation]; isKey {
			flag.Hidden = true
		}
	})
}

// Load reads every source and returns the configuration, or every violation found as a Violations. Where all of them
// may heal without a restart, it returns the configuration with them as its Warnings.
func Load(options Options) (*Config, error) {
	cfg := Default()
	l := &loader{cfg: cfg, schema: schema.Of(cfg), env: options.Env, sources: map[string]string{}}
	l.layers(options.Layers)
	l.file(filePath(options))
	l.variables()
	l.flags(options.Flags)
	l.secrets()
	l.files()
	l.validate()
	for _, layer := range options.Layers {
		l.add(layer.Check(cfg))
	}
	if l.violations.fatal() {
		return nil, l.violations
	}
	cfg.Warnings = l.violations
	return cfg, nil
}

func filePath(options Options) string {
	if options.Flags != nil && options.Flags.Changed(FileFlag) {
		return options.Flags.Lookup(FileFlag).Value.String()
	}
	return options.Env[FileVariable]
}

type loader struct {
	cfg        *Config
	schema     *schema.Schema
	env        Environment
	sources    map[string]string // where each key's final value came from
	violations Violations
}

func (l *loader) layers(layers []Layer) {
	for _, layer := range layers {
		if layer.Apply == nil {
			continue
		}
		sources, err := layer.Apply(l.env, l.cfg)
		if err != nil {
			l.violations = append(l.violations, Violation{Source: "environment", Message: err.Error()})
			continue
		}
		maps.Copy(l.sources, sources)
	}
}

func (l *loader) file(path string) {
	if path == "" {
		return
	}
	content, err := os.ReadFile(path)
	if err != nil {
		l.violations = append(l.violations, Violation{Source: path, Message: fmt.Sprintf("the configuration file cannot be "+
			"read: %v; check the path given by --%s or %s", err, FileFlag, FileVariable)})
		return
	}
	sources, violations := l.schema.ReadFile(path, content)
	maps.Copy(l.sources, sources)
	for _, f := range violations {
		l.violations = append(l.violations, Violation{Path: f.Path, Source: f.Source, Message: f.Message})
	}
}

func (l *loader) variables() {
	for _, k := range l.schema.Keys {
		if text, ok := l.env.LookupEnv(k.Variable()); ok {
			l.set(k, text, k.Variable())
		}
	}
}

func (l *loader) flags(flags *pflag.FlagSet) {
	if flags == nil {
		return
	}
	for _, k := range l.schema.Keys {
		if flag := flags.Lookup(k.Flag()); flag != nil && flag.Changed {
			l.set(k, flag.Value.String(), "--"+k.Flag())
		}
	}
}

func (l *loader) set(k schema.Key, text, source string) {
	if err := k.Set(text); err != nil {
		l.violations = append(l.violations, Violation{Path: k.Path, Source: source, Message: err.Error()})
		return
	}
	l.sources[k.Path] = source
}

// secrets resolves the references in connection texts. A password in plain text is refused unless it came through
// the key's own variable: a file is committed and a command line is seen by every user of the machine.
func (l *loader) secrets() {
	for _, k := range l.schema.Keys {
		secret, ok := reflect.TypeAssert[Secret](k.Value)
		if !ok {
			continue
		}
		if HasPlainPassword(secret.Reveal()) && l.sources[k.Path] != k.Variable() {
			l.report(k.Path, "holds a password in plain text; refer to it as ${env:NAME} or ${file:/path}, or give the whole "+
				"value in "+k.Variable())
		}
		resolved, violations := ResolveDSN(secret.Reveal(), l.env.LookupEnv)
		for _, violation := range violations {
			l.report(k.Path, violation)
		}
		k.Value.SetString(resolved)
	}
}

// files makes paths absolute, so that a later change of the working directory cannot move them, and
// reports those that cannot be read.
func (l *loader) files() {
	for _, k := range l.schema.Keys {
		name := k.Value.String()
		if !k.IsFile() || name == "" {
			continue
		}
		file, err := os.Open(name)
		if err != nil {
			l.report(k.Path, fmt.Sprintf("the file cannot be read: %v; check its path and permissions", err))
			continue
		}
		if k.Kind == schema.SecretFile {
			if err := secretfile.Check(file, name); err != nil {
				l.report(k.Path, err.Error())
			}
		}
		_ = file.Close() // opened for reading only
		if absolute, err := filepath.Abs(name); err == nil {
			k.Value.SetString(absolute)
		}
	}
}

func (l *loader) validate() { l.add(l.cfg.validate()) }

// add adds the violations of values, except of keys that have one already: a value that could not be read
// keeps its default and would only be reported twice.
func (l *loader) add(found Violations) {
	reported := map[string]bool{}
	for _, p := range l.violations {
		reported[p.Path] = p.Path != ""
	}
	for _, p := range found {
		if !reported[p.Path] {
			l.violation(p)
		}
	}
}

func (l *loader) report(path, message string) { l.violation(Violation{Path: path, Message: message}) }

// violation adds a violation, with the source of its key where it has none itself.
func (l *loader) violation(p Violation) {
	if p.Source == "" {
		p.Source = l.sources[p.Path]
	}
	if p.Source == "" {
		p.Source = "default"
	}
	l.violations = append(l.violations, p)
}
