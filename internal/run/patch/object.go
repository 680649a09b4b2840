package patch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// object is a JSON object whose members keep their order: an input that was edited in one member is otherwise as it was
// given.
type object struct {
	members []member
	at      map[string]int // the index of each member
}

// member is a member of an object. One that was removed keeps its index until the object is encoded.
type member struct {
	name    string
	value   any
	removed bool
}

func (o *object) get(name string) (any, bool) {
	i, there := o.at[name]
	if !there {
		return nil, false
	}
	return o.members[i].value, true
}

// set replaces the value of a member in its place; a new member is the last.
func (o *object) set(name string, value any) {
	if i, there := o.at[name]; there {
		o.members[i].value = value
		return
	}
	o.at[name] = len(o.members)
	o.members = append(o.members, member{name: name, value: value})
}

func (o *object) remove(name string) {
	if i, there := o.at[name]; there {
		o.members[i] = member{removed: true}
		delete(o.at, name)
	}
}

// all returns the members in their order.
func (o *object) all() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, m := range o.members {
			if !m.removed && !yield(m.name, m.value) {
				return
			}
		}
	}
}

// MarshalJSON implements [json.Marshaler].
func (o *object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for name, value := range o.all() {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		for i, part := range []any{name, value} {
			text, err := encode(part)
			if err != nil {
				return nil, err
			}
			if i > 0 {
				b.WriteByte(':')
			}
			b.Write(text)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

var errTrailing = errors.New("unexpected text after the value")

// decode reads one value. Numbers keep their text, objects are of type [object]; of members with one name the last
// counts.
func decode(raw json.RawMessage) (any, error) {
	// The decoder of tokens below does not check the syntax of everything that it reads.
	var checked json.RawMessage
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(&checked); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errTrailing
	}
	d = json.NewDecoder(bytes.NewReader(checked))
	d.UseNumber()
	return decodeValue(d)
}

func decodeValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		o := &object{at: map[string]int{}}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			o.set(fmt.Sprint(name), value)
		}
		_, err = d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err = d.Token()
		return list, err
	default:
		return token, nil
	}
}

func encode(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
