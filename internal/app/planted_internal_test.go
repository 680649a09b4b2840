package app

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"reflect"
	"strings"
	"time"
)

// planted is a value that needs escaping in every encoding.
const planted = `plänted/"<secret>"+4711`

// plain returns the encodings of the planted value that do not depend on adjacent bytes.
func plain() []string {
	inHex := hex.EncodeToString([]byte(planted))
	list := []string{
		planted, html.EscapeString(planted), url.QueryEscape(planted), url.PathEscape(planted), inHex, strings.ToUpper(inHex),
	}
	nested := planted
	for range 3 {
		nested = string(encode(nested))
		nested = nested[1 : len(nested)-1]
		list = append(list, nested)
	}
	return list
}

// inBase64 returns the base64 encodings after the given number of bytes.
func inBase64(before int) []string {
	at := []byte(strings.Repeat("x", before) + planted)
	return []string{base64.StdEncoding.EncodeToString(at), base64.RawURLEncoding.EncodeToString(at)}
}

// encodings are the searched texts. The first and the last characters of base64 depend on adjacent bytes.
func encodings() []string {
	list := plain()
	for before := range 3 {
		for _, encoded := range inBase64(before) {
			list = append(list, encoded[4:len(encoded)-4])
		}
	}
	return list
}

// quotes returns a text with the planted value in all encodings.
func quotes() string {
	list := plain()
	for before := range 3 {
		list = append(list, inBase64(before)...)
	}
	return "said " + strings.Join(list, " and ")
}

// encode returns a value as JSON.
func encode(v any) json.RawMessage {
	text, _ := json.Marshal(v) //nolint:errchkjson // values of tests always encode
	return text
}

func data() json.RawMessage {
	return encode(map[string]any{
		"n": 1, "said": quotes(), "in " + quotes(): []any{planted, map[string]string{"password": planted}}})
}

// names are the fields without data of a run: values chosen by the platform and the author of the document, order and
// identity.
var names = map[string]bool{
	"ID": true, "Project": true, "Path": true, "Pointer": true, "DeadlineBy": true, "Task": true, "Kind": true,
	"Status": true, "WaitingKind": true, "RunID": true,
	"ExecutionID": true, "Type": true, "Outcome": true, "Source": true, "DataContentType": true, "DataSchema": true,
	"Actor": true, "Cause": true,
	"Code": true, "Build": true, "NewRunID": true, "Workflow": true, "Version": true, "Listener": true, "Result": true,
	"DataBase64": true,
	"Mode":       true, "From": true, "Sensitive": true, "Originals": true, "Original": true, "Action": true,
	"Traceparent": true,
}

// plant puts the planted value into every text and value of a structure but [names], in all encodings.
func plant(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes(data())
	case v.Type() == reflect.TypeFor[time.Time]():
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		plant(v.Elem())
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			plant(v.Index(i))
		}
	case v.Kind() == reflect.String:
		v.SetString(quotes())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !names[f.Name] {
				plant(v.Field(i))
			}
		}
	}
}

func planting[T any](value T) T {
	plant(reflect.ValueOf(&value).Elem())
	return value
}
