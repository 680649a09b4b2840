package invocation

import "github.com/spf13/pflag"

// globalAnnotation marks the flags that all commands share, which help lists apart.
const globalAnnotation = "signalbox.global"

func global(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = flags.SetAnnotation(name, globalAnnotation, nil) // the flag is there
	}
}

// IsGlobal reports whether a flag is one that all commands share.
func IsGlobal(flag *pflag.Flag) bool {
	_, is := flag.Annotations[globalAnnotation]
	return is
}
