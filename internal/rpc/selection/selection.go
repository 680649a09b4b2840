// Package selection copies the conditions that select runs from one message of the API to another. Lists, counts, exports, batches and
// saved views have the same conditions, as fields of the same names:
//
//	request := &signalboxv1.ListRunsRequest{Project: "shop"}
//	selection.Copy(request, message.Conditions(filter))
//
// BatchFilter has the conditions and nothing else, so its fields are the list of them.
package selection

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
)

// Fields returns the names of the conditions.
func Fields() []protoreflect.Name {
	fields := (&signalboxv1.BatchFilter{}).ProtoReflect().Descriptor().Fields()
	names := make([]protoreflect.Name, fields.Len())
	for i := range names {
		names[i] = fields.Get(i).Name()
	}
	return names
}

// Copy sets the conditions of a message to those of another one, and leaves its other fields as they are. Lists are shared between the
// two. Both messages must have all conditions.
func Copy(to, from proto.Message) {
	source, target := from.ProtoReflect(), to.ProtoReflect()
	for _, name := range Fields() {
		in, out := source.Descriptor().Fields().ByName(name), target.Descriptor().Fields().ByName(name)
		if source.Has(in) {
			target.Set(out, source.Get(in))
		} else {
			target.Clear(out)
		}
	}
}

// Of returns the conditions of a message.
func Of(m proto.Message) *signalboxv1.BatchFilter {
	f := &signalboxv1.BatchFilter{}
	Copy(f, m)
	return f
}
