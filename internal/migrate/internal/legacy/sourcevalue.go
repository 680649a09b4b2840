package legacy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Text returns a column as text; NULL is empty.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.RawMessage:
		return string(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case [16]byte:
		return fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:])
	}
	return fmt.Sprint(v)
}

// Values are values of the source by column. Their JSON form preserves their types.
type Values map[string]any

// value is the JSON form of one value: it distinguishes a time from its text, and keeps all digits of a number.
type value struct {
	Time  *time.Time `json:"time,omitempty"`
	Int   *int64     `json:"int,omitempty"`
	Float *float64   `json:"float,omitempty"`
	Text  *string    `json:"text,omitempty"`
}

func valueOf(v any) value {
	switch v := v.(type) {
	case nil:
		return value{}
	case time.Time:
		v = v.UTC()
		return value{Time: &v}
	case int64:
		return value{Int: &v}
	case float64:
		return value{Float: &v}
	}
	text := Text(v)
	return value{Text: &text}
}

func (v value) back() any {
	switch {
	case v.Time != nil:
		return *v.Time
	case v.Int != nil:
		return *v.Int
	case v.Float != nil:
		return *v.Float
	case v.Text != nil:
		return *v.Text
	}
	return nil
}

// MarshalJSON implements [json.Marshaler].
func (v Values) MarshalJSON() ([]byte, error) {
	out := make(map[string]value, len(v))
	for column, one := range v {
		out[column] = valueOf(one)
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (v *Values) UnmarshalJSON(text []byte) error {
	var in map[string]value
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*v = make(Values, len(in))
	for column, one := range in {
		(*v)[column] = one.back()
	}
	return nil
}

// Key is a single value, with the same JSON form as in [Values].
type Key struct{ Value any }

// MarshalJSON implements [json.Marshaler].
func (k Key) MarshalJSON() ([]byte, error) { return json.Marshal(valueOf(k.Value)) }

// UnmarshalJSON implements [json.Unmarshaler].
func (k *Key) UnmarshalJSON(text []byte) error {
	var in value
	err := json.Unmarshal(text, &in)
	k.Value = in.back()
	return err
}

// OpenWait reports whether a wait is not resolved.
func OpenWait(w Record) bool {
	return w["resolved_at"] == nil &&
		!slices.Contains([]string{"RESOLVED", "COMPLETED", "CANCELED", "CANCELLED", "EXPIRED", "TIMED_OUT"},
			strings.ToUpper(Text(w["status"])))
}
