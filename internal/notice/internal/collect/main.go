// Command collect writes the licence texts of the software of others that Signalbox's programs contain.
//
//	collect ROOT FILE
//
// ROOT is the folder of the repository, whose packages of the web UI are installed. It is an error if a module or package has no text.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: collect ROOT FILE")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "collect:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, file string) error {
	programs, err := modules(ctx, root)
	if err != nil {
		return err
	}
	studio, err := packages(root)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write([]byte(introduction + render(programsTitle, programs) + render(studioTitle, studio))); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644) //nolint:gosec // it is public
}
