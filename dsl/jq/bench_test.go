package jq_test

import (
	"strings"
	"testing"

	"github.com/signalbox-dev/signalbox/dsl/jq"
)

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := jq.Compile(`.orders | map(select(.total > 10)) | length`, []string{"context", "input"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRunSmall(b *testing.B) {
	p, err := jq.Compile(`.n + 1`, nil)
	if err != nil {
		b.Fatal(err)
	}
	input := map[string]any{"n": 1}
	for b.Loop() {
		if _, err := p.Run(input, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMillionUnits(b *testing.B) {
	p, err := jq.Compile(`def f: f; f`, nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := p.Run(nil, nil, jq.NewFuel(1_000_000)); err == nil {
			b.Fatal("no end")
		}
	}
}

// BenchmarkEncodeText encodes a text of 3 MB, as runs do with their inputs and outputs.
func BenchmarkEncodeText(b *testing.B) {
	for name, text := range map[string]string{
		"plain": strings.Repeat("a", 3_000_000), "umlauts": strings.Repeat("aä", 1_000_000),
		"escapes": strings.Repeat("abc\n", 750_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := jq.EncodeJSON(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
