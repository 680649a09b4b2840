// Command document writes the OpenAPI document, for `make generate`. It is not part of the product.
//
// Usage: document IMAGE BASE FILE reads the image of the protos and the base, and writes the document to FILE.
package main

import (
	"fmt"
	"os"

	"github.com/signalbox-dev/signalbox/internal/rpc/openapi"
)

func main() {
	const arguments = 4
	if len(os.Args) != arguments {
		fmt.Fprintln(os.Stderr, "usage: document IMAGE BASE FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(imageFile, baseFile, target string) error {
	image, err := os.ReadFile(imageFile)
	if err != nil {
		return err
	}
	base, err := os.ReadFile(baseFile)
	if err != nil {
		return err
	}
	document, err := openapi.Generate(image, base)
	if err != nil {
		return err
	}
	return os.WriteFile(target, document, 0o644) //nolint:gosec // a public document
}
