package secret_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/secret"
)

func variables(set map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := set[name]
		return value, ok
	}
}

func options() secret.ProviderOptions {
	return secret.ProviderOptions{Lookup: variables(nil), Timeout: 10 * time.Second}
}

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(content), mode))
}

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/outside", "not yours", 0o600)
	write(t, dir+"/in/shop/plain", "value\n", 0o600)
	write(t, dir+"/in/shop/lines", "a\nb\r\n", 0o600)
	write(t, dir+"/in/shop/..2026/linked", "as Kubernetes does", 0o600)
	write(t, dir+"/in/shop/big", strings.Repeat("x", secret.MaxBytes+1), 0o600)
	write(t, dir+"/in/other/theirs", "x", 0o600)
	write(t, dir+"/in/shop/exposed", "x", 0o600)
	require.NoError(t, os.Chmod(dir+"/in/shop/exposed", 0o644))
	require.NoError(t, os.Symlink("..2026", dir+"/in/shop/..data"))
	require.NoError(t, os.Symlink("..data/linked", dir+"/in/shop/linked"))
	require.NoError(t, os.Symlink("../../outside", dir+"/in/shop/escape"))
	require.NoError(t, os.Symlink(dir+"/outside", dir+"/in/shop/absolute"))
	require.NoError(t, os.Mkdir(dir+"/in/shop/folder", 0o700))
	o := options()
	o.Dir = dir + "/in"
	p := secret.NewProvider(o)

	for name, want := range map[string]string{"plain": "value", "lines": "a\nb", "linked": "as Kubernetes does"} {
		got, err := p.Resolve(t.Context(), "shop", name)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	for _, at := range [][2]string{
		{"shop", "gone"}, {"gone", "plain"}, {"shop", "theirs"}, {"shop", "../other/theirs"}, {"shop", ".."},
		{"..", "outside"},
		{"shop", "..data"}, {"", "plain"}, {"shop", ""}, {"shop", "plain\x00"}, {"shop/..", "plain"}, {".", "plain"},
	} {
		_, err := p.Resolve(t.Context(), at[0], at[1])
		require.ErrorIs(t, err, secret.ErrMissing, "%q", at)
	}
	for name, says := range map[string]string{
		"escape": "escapes", "absolute": "escapes", "folder": "is not a file", "big": "over the limit of 65536 bytes",
		"exposed": "can be read by all users of the machine (mode 0644): run `chmod 600 \"shop/exposed\"`",
	} {
		_, err := p.Resolve(t.Context(), "shop", name)
		require.ErrorContains(t, err, says)
		require.NotErrorIs(t, err, secret.ErrMissing)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	o := options()
	o.Prefix = "S_"
	o.Lookup = variables(map[string]string{"S_SHOP_EU__PAYMENT_KEY": "v", "S_A__B__C": "w", "S_SHOP": "x", "PATH": "y"})
	p := secret.NewProvider(o)
	for _, name := range []string{"payment-key", "payment.key", "PAYMENT_KEY"} {
		got, err := p.Resolve(t.Context(), "shop-eu", name)
		require.NoError(t, err)
		require.Equal(t, "v", string(got))
	}
	got, err := p.Resolve(t.Context(), "a", "b__c")
	require.NoError(t, err)
	require.Equal(t, "w", string(got))
	_, err = p.Resolve(t.Context(), "a--b", "c")
	require.ErrorIs(t, err, secret.ErrMissing, "the variable belongs to project a")
	_, err = p.Resolve(t.Context(), "shop-us", "payment-key")
	require.EqualError(t, err, `the secret "payment-key": not found by secrets.env_prefix`)
}

func TestProgram(t *testing.T) {
	t.Parallel()
	script := t.TempDir() + "/give"
	write(t, script, `#!/bin/sh
echo "quoting secret-value" >&2
case "$3" in
plain) echo "$1:$2:$3" ;;
gone) exit 3 ;;
broken) echo secret-value; exit 1 ;;
slow) exec sleep 60 ;;
big) head -c 100000 /dev/zero | tr '\0' x ;;
esac
`, 0o700)
	o := options()
	o.Command = []string{script, "--first"}
	p := secret.NewProvider(o)
	got, err := p.Resolve(t.Context(), "shop", "plain")
	require.NoError(t, err)
	require.Equal(t, "--first:shop:plain", string(got))
	_, err = p.Resolve(t.Context(), "shop", "gone")
	require.ErrorIs(t, err, secret.ErrMissing)
	_, err = p.Resolve(t.Context(), "--shop", "plain")
	require.ErrorIs(t, err, secret.ErrMissing, "no name becomes an option")
	_, err = p.Resolve(t.Context(), "shop", "broken")
	require.EqualError(t, err, `secrets.command failed for the secret "broken" with status 1`)
	_, err = p.Resolve(t.Context(), "shop", "big")
	require.ErrorContains(t, err, "over the limit")

	o.Timeout = 50 * time.Millisecond
	_, err = secret.NewProvider(o).Resolve(t.Context(), "shop", "slow")
	require.EqualError(t, err, `secrets.command did not give the secret "slow" within 50ms`)
	o.Command, o.Timeout = []string{script + "-gone"}, options().Timeout
	_, err = secret.NewProvider(o).Resolve(t.Context(), "shop", "plain")
	require.ErrorContains(t, err, `run secrets.command for the secret "plain"`)
}

func TestFirstProviderWithSecretWins(t *testing.T) {
	t.Parallel()
	o := options()
	o.Dir = t.TempDir()
	o.Prefix = "S_"
	o.Lookup = variables(map[string]string{"S_SHOP__A": "from a variable", "S_SHOP__B": "from a variable"})
	write(t, o.Dir+"/shop/a", "from a file", 0o600)
	p := secret.NewProvider(o)
	for name, want := range map[string]string{"a": "from a file", "b": "from a variable"} {
		got, err := p.Resolve(t.Context(), "shop", name)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	_, err := p.Resolve(t.Context(), "shop", "c")
	require.EqualError(t, err, `the secret "c": not found by secrets.dir, secrets.env_prefix`)
	_, err = secret.NewProvider(options()).Resolve(t.Context(), "shop", "c")
	require.ErrorContains(t, err, "no provider of secrets is set up")
}

func TestRotation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.Dir, o.Keep = t.TempDir(), 5*time.Second
		p := secret.NewProvider(o)
		get := func() string {
			got, err := p.Resolve(t.Context(), "shop", "a")
			if err != nil {
				return err.Error()
			}
			return string(got)
		}
		require.Contains(t, get(), "not found")
		write(t, o.Dir+"/shop/a", "one", 0o600)
		require.Equal(t, "one", get(), "missing secrets are not cached")
		write(t, o.Dir+"/shop/a", "two", 0o600)
		<-time.After(4 * time.Second)
		require.Equal(t, "one", get())
		<-time.After(time.Second + time.Millisecond)
		require.Equal(t, "two", get())
		require.NoError(t, os.Remove(o.Dir+"/shop/a"))
		<-time.After(5*time.Second + time.Millisecond)
		require.Contains(t, get(), "not found")
	})
}

func TestValuesAreNotPrinted(t *testing.T) {
	t.Parallel()
	value := secret.Value("planted")
	asJSON, err := json.Marshal(map[string]any{"v": value})
	require.NoError(t, err)
	for _, text := range []string{
		fmt.Sprint(value), fmt.Sprintf("%v %+v %#v %s", value, value, value, value), string(asJSON)} {
		require.NotContains(t, text, "planted")
		require.Contains(t, text, "⟦redacted⟧")
	}
}
