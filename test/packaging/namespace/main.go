// Command namespace stands in for Temporal's command line in the images of make compose-test, which cannot be built as
// a dependency: its module has replacements. It has the two commands that deploy/compose/temporal/namespace.sh uses,
// with their flags:
//
//	temporal operator namespace describe --namespace NAME
//	temporal operator namespace create --namespace NAME --retention DURATION
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	const words = 3
	flags := flag.NewFlagSet("temporal", flag.ContinueOnError)
	name := flags.String("namespace", "", "")
	retention := flags.Duration("retention", 0, "")
	verb := strings.Join(args[:min(words, len(args))], " ")
	if err := flags.Parse(args[min(words, len(args)):]); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := grpc.NewClient(os.Getenv("TEMPORAL_ADDRESS"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing is in flight
	temporal := workflowservice.NewWorkflowServiceClient(conn)
	switch verb {
	case "operator namespace describe":
		_, err = temporal.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: *name})
	case "operator namespace create":
		_, err = temporal.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
			Namespace: *name, WorkflowExecutionRetentionPeriod: durationpb.New(*retention),
		})
	default:
		return fmt.Errorf("unknown command %q", verb)
	}
	return err
}
