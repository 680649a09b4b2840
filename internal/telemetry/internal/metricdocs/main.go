// Command metricdocs writes the reference page of the metrics to the file named by its argument, for go generate. It is not part of the
// product.
//
// Names, types, labels and meanings are those of the instruments themselves: it creates all of them in a [telemetry.Telemetry] with example
// values, and reads its page. The rules of Prometheus and the dashboards of Grafana in the given folder show where each metric is used.
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 { //nolint:mnd // the program and two arguments
		fmt.Fprintln(os.Stderr, "usage: metricdocs REPOSITORY FILE")
		os.Exit(2)
	}
	page, err := generate(context.Background(), os.Args[1])
	if err == nil {
		err = os.WriteFile(os.Args[2], []byte(page), 0o644) //nolint:gosec // a public page
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// generate returns the page of a repository.
func generate(ctx context.Context, repository string) (string, error) {
	metrics, err := instruments(ctx)
	if err != nil {
		return "", fmt.Errorf("read the instruments: %w", err)
	}
	used, err := usages(repository)
	if err != nil {
		return "", err
	}
	return render(metrics, used), nil
}
