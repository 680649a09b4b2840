package jsoncodec_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
)

// BenchmarkAppend writes a page of 50 runs.
func BenchmarkAppend(b *testing.B) {
	page := &signalboxv1.ListRunsResponse{}
	for range 50 {
		page.Runs = append(page.Runs, &signalboxv1.Run{
			Id: "0199-8a", Project: "default", Workflow: "demo/hello", Version: "1.0.0", Status: "completed",
			StatusTime: timestamppb.Now(), CreateTime: timestamppb.Now(), EndTime: timestamppb.Now(), StepsTotal: 3,
			StepsDone: 3, Sequence: 9,
		})
	}
	buf, err := jsoncodec.Append(nil, page)
	require.NoError(b, err)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		if buf, err = jsoncodec.Append(buf[:0], page); err != nil {
			b.Fatal(err)
		}
	}
}
