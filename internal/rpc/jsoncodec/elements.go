package jsoncodec

import (
	"bytes"
	"encoding/json"
	"errors"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Elements calls count for each element of each list and map in the JSON of a message, with the name of the field and
// the number of its elements so far, until count returns an error, which Elements returns. It reads no element into
// memory but the current one. Inline values (JsonValue) are not entered, and what is not JSON of such a message is left
// to [Unmarshal].
func Elements(data []byte, d protoreflect.MessageDescriptor, count func(name string, n int) error) error {
	err := elements(json.NewDecoder(bytes.NewReader(data)), d, "", count)
	if errors.Is(err, errUnreadable) {
		return nil
	}
	return err
}

// errUnreadable ends the count at what is not JSON of the message.
var errUnreadable = errors.New("not JSON of the message")

func elements(
	decoder *json.Decoder, d protoreflect.MessageDescriptor, prefix string, count func(string, int) error,
) error {
	if isJSONValue(d) {
		return skip(decoder)
	}
	if entered, err := enter(decoder, '{'); err != nil || !entered {
		return err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return errUnreadable
		}
		name, _ := key.(string)
		field := d.Fields().ByJSONName(name)
		if field == nil {
			field = d.Fields().ByName(protoreflect.Name(name))
		}
		switch {
		case field == nil:
			err = skip(decoder)
		case field.IsMap():
			err = each(decoder, json.Delim('{'), field.MapValue().Message(), prefix+name, count)
		case field.IsList():
			err = each(decoder, json.Delim('['), field.Message(), prefix+name, count)
		case field.Message() != nil:
			err = elements(decoder, field.Message(), prefix+name+".", count)
		default:
			err = skip(decoder)
		}
		if err != nil {
			return err
		}
	}
	return leave(decoder)
}

// each counts the elements of a list or map.
func each(
	decoder *json.Decoder, opens json.Delim, element protoreflect.MessageDescriptor, name string,
	count func(string, int) error,
) error {
	if entered, err := enter(decoder, opens); err != nil || !entered {
		return err
	}
	for n := 1; decoder.More(); n++ {
		if err := count(name, n); err != nil {
			return err
		}
		if opens == '{' {
			if _, err := decoder.Token(); err != nil {
				return errUnreadable
			}
		}
		var err error
		if element == nil {
			err = skip(decoder)
		} else {
			err = elements(decoder, element, name+".", count)
		}
		if err != nil {
			return err
		}
	}
	return leave(decoder)
}

// enter reads the beginning of an object or list, and reports whether there is one: null, and a text in place of an
// object, are read as a whole.
func enter(decoder *json.Decoder, opens json.Delim) (bool, error) {
	opening, err := decoder.Token()
	if delim, is := opening.(json.Delim); err != nil || is && delim != opens {
		return false, errUnreadable
	} else if !is {
		return false, nil
	}
	return true, nil
}

// leave reads the end of an object or list.
func leave(decoder *json.Decoder) error {
	if _, err := decoder.Token(); err != nil {
		return errUnreadable
	}
	return nil
}

// skip reads a value and discards it.
func skip(decoder *json.Decoder) error {
	var value json.RawMessage
	if decoder.Decode(&value) != nil {
		return errUnreadable
	}
	return nil
}
