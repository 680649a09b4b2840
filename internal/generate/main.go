// Command generate writes a file that is generated from the code of the platform. It is not part of the product, which
// has only the data.
//
//	generate access FILE                 docs/reference/access.md, from package permission
//	generate configuration FILE          docs/reference/configuration.md, from package config
//	generate controls FILE               docs/reference/controls.md, from package control
//	generate errors FILE                 docs/reference/errors.md, from package apierror
//	generate metrics REPOSITORY FILE     docs/reference/metrics.md, from package telemetry
//	generate licences REPOSITORY FILE    the licence texts of package notice
//	generate openapi IMAGE BASE FILE     api/openapi.yaml; openapi.go describes the image and the base
//
// `make generate` runs all of them. docs/reference/cli.md is written by a command of the module devserver, which alone
// has all commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// generator makes one file from its sources.
type generator struct {
	sources int
	make    func(ctx context.Context, sources []string) ([]byte, error)
}

func main() {
	if err := generateFile(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generateFile(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: generate WHAT [SOURCE...] FILE")
	}
	what, sources := args[0], args[1:]
	g, ok := generators()[what]
	if !ok || len(sources) != g.sources+1 {
		return fmt.Errorf("%q has other arguments, or does not exist", what)
	}
	content, err := g.make(ctx, sources[:g.sources])
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return os.WriteFile(sources[g.sources], content, 0o644) //nolint:gosec // public files
}

// generators returns all generators by name.
func generators() map[string]generator {
	page := func(content func() []byte) generator {
		return generator{0, func(context.Context, []string) ([]byte, error) { return content(), nil }}
	}
	return map[string]generator{
		"access":        page(accessPage),
		"configuration": page(configurationPage),
		"controls":      page(controlPage),
		"errors":        page(errorPage),
		"metrics":       {1, func(ctx context.Context, s []string) ([]byte, error) { return metricsPage(ctx, s[0]) }},
		"licences":      {1, func(ctx context.Context, s []string) ([]byte, error) { return licenceTexts(ctx, s[0]) }},
		"openapi":       {2, func(_ context.Context, s []string) ([]byte, error) { return document(s[0], s[1]) }},
	}
}

// document returns the OpenAPI document of two files.
func document(imageFile, baseFile string) ([]byte, error) {
	image, err := os.ReadFile(imageFile)
	if err != nil {
		return nil, err
	}
	base, err := os.ReadFile(baseFile)
	if err != nil {
		return nil, err
	}
	return openAPIDocument(image, base)
}
