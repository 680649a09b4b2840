package javascript

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Every byte of the module is read as what it is: a cut or an unknown instruction is an error, and never a panic.
func TestMeterRefusesOtherModules(t *testing.T) {
	t.Parallel()
	for _, module := range []string{"", "\x00asm\x02\x00\x00\x00", header, header + "\x01\x05", header + "\x0a\x01\x00"} {
		_, err := meter([]byte(module), interruptName)
		require.Error(t, err, "%q", module)
	}
	_, err := meter(quickjs, "other")
	require.ErrorContains(t, err, `it does not import the function "other" without parameters`)
	for cut := 9; cut < len(quickjs); cut += 4999 {
		_, err := meter(quickjs[:cut], interruptName)
		require.Error(t, err, "cut at %d", cut)
	}
}

// FuzzMeter finds modules whose rewriting panics.
func FuzzMeter(f *testing.F) {
	f.Add([]byte(header))
	f.Add(quickjs[:20000])
	f.Fuzz(func(_ *testing.T, module []byte) {
		_, _ = meter(module, interruptName) // it returns
	})
}
