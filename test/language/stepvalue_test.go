package language_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// An answer of 573 kB keeps its type in the steps, which have its size, and is read whole: in parts, in pages, and with
// marks in place of what is sensitive; also from an execution before the newest one.
func TestLargeStepValuesAreReadWhole(t *testing.T) {
	t.Parallel()
	const items, mark = 5000, "⟦redacted⟧"
	s, o := shared.Get(t), origin.New(t)
	orders := make([]string, items)
	for i := range orders {
		orders[i] = fmt.Sprintf(`{"id":%d,"note":"%s"}`, i, strings.Repeat("é", 47))
	}
	answer := `{"customer":{"name":"Ada","password":"planted-secret-word"},"orders":[` + strings.Join(orders, ",") + `]}`
	o.Answer("GET /orders", 200, answer)
	id := s.Start(t, s.Publish(t, platform.Document("large-step", `
  - load:
      call: http
      with: {method: get, endpoint: `+o.URL+`/orders}
      export: {as: '${ {orders: .orders, said: ("it is " + .customer.password)} }'}
  - long:
      for: {each: n, in: '${ [range(60)] }'}
      do: [{add: {set: {sum: '${ $n + ([range(200000)] | length) }'}}}]
  - last: {set: {orders: '${ $context.orders }', said: '${ $context.said }'}}
  - count: {set: {n: '${ .orders | length }'}}
`)), "{}").GetId()
	require.JSONEq(t, `{"n":5000}`, s.Await(t, id, soon, "completed").GetOutput().GetJson())
	require.Greater(t, len(platform.Histories(t, platform.DialTemporal(t, s.temporal.Address), id)), 1,
		"the run has continued as new")

	steps := s.Steps(t, id)
	load, last := steps[0], steps[len(steps)-2]
	require.EqualValues(t, len(answer), load.GetOutputShortened().GetSize())
	require.Nil(t, load.GetInputShortened())
	var shown struct {
		Customer map[string]string
		Orders   []struct{ ID int }
	}
	require.NoError(t, json.Unmarshal([]byte(load.GetOutput().GetJson()), &shown))
	require.Equal(t, map[string]string{"name": "Ada", "password": mark}, shown.Customer)
	require.Equal(t, 1, shown.Orders[1].ID)
	require.Less(t, len(load.GetOutput().GetJson()), 4<<10)

	size := fmt.Sprintf("shortened, %d kB in all", (len(answer)+500)/1000)
	require.Contains(t, s.CLI(t, "run", "step", id, "1").Stdout, size)
	require.Contains(t, s.CLI(t, "run", "steps", id).Stdout, size)
	require.Contains(t, s.CLI(t, "run", "export", id).Stdout, fmt.Sprintf(`"outputShortened":{"size":%d}`, len(answer)))

	whole := s.CLI(t, "run", "value", id, "1", "output")
	require.Equal(t, platform.ExitOK, whole.Code, whole.Stderr)
	require.Equal(t, strings.Replace(answer, "planted-secret-word", mark, 1)+"\n", whole.Stdout)
	require.Equal(t, orders[items-1]+"\n", s.CLI(t, "run", "value", id, "1", "output", "--pointer", "/orders/4999").Stdout)
	number := fmt.Sprint(last.GetNumber())
	require.Equal(t, `"it is `+mark+"\"\n", s.CLI(t, "run", "value", id, number, "output", "--pointer", "/said").Stdout)
	require.Equal(t, orders[7]+"\n", s.CLI(t, "run", "value", id, number, "output", "--pointer", "/orders/7").Stdout)
	missing := s.CLI(t, "run", "value", id, "1", "output", "--pointer", "/orders/5000")
	require.Equal(t, platform.ExitNotFound, missing.Code)
	require.Contains(t, missing.Stderr, "VALUE_NOT_RECORDED")

	var text strings.Builder
	for offset := int64(0); ; {
		code, body, err := s.Get(t.Context(),
			fmt.Sprintf("/v1/projects/default/runs/%s/steps/1/value?value=output&limit=100001&offset=%d", id, offset))
		require.NoError(t, err)
		require.Equal(t, 200, code, body)
		var page struct {
			Text             string
			Size, NextOffset int64
		}
		require.NoError(t, json.Unmarshal([]byte(body), &page))
		require.EqualValues(t, len(whole.Stdout)-1, page.Size)
		require.LessOrEqual(t, len(page.Text), 100_001)
		text.WriteString(page.Text)
		if offset = page.NextOffset; offset == 0 {
			break
		}
	}
	require.Equal(t, whole.Stdout, text.String()+"\n")
}
