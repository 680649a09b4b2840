// Package label has the rules of the keys and values of labels, by which runs are found. They are the same for labels in a
// document and in a request.
//
//	violation := label.KeyViolation("order")
//	value, violation := label.Value(result)
package label

import (
	"fmt"
	"math/big"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// The limits of the labels of a run; those of keys and values are in bytes.
const (
	MaxCount = 16
	MaxKey   = 63
	MaxValue = 256
)

const keyCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/"

// KeyViolation returns what is wrong with the key of a label; empty if it is valid.
func KeyViolation(key string) string {
	switch {
	case key == "":
		return "is empty"
	case len(key) > MaxKey:
		return fmt.Sprintf("has %d characters, more than %d", len(key), MaxKey)
	case strings.ContainsFunc(key, func(r rune) bool { return !strings.ContainsRune(keyCharacters, r) }):
		return "has other characters than letters, digits and . _ - /"
	}
	return ""
}

// ValueViolation returns what is wrong with the value of a label, without quoting it; empty if it is valid.
func ValueViolation(value string) string {
	switch {
	case value == "":
		return "is empty"
	case len(value) > MaxValue:
		return fmt.Sprintf("has %d bytes, more than %d", len(value), MaxValue)
	case !utf8.ValidString(value):
		return "is not UTF-8"
	}
	for _, r := range value {
		if !unicode.IsPrint(r) {
			return fmt.Sprintf("has the character %U, which is not printable", r)
		}
	}
	return ""
}

// Value converts the result of an expression to the value of a label: a text, a number with all its digits, or a boolean.
// For null and for an empty text the run has no such label, and the value is empty. Otherwise violation states what is
// wrong with the result, without quoting it.
func Value(result any) (value, violation string) {
	switch v := result.(type) {
	case nil:
		return "", ""
	case string:
		if v == "" {
			return "", ""
		}
		return v, ValueViolation(v)
	case bool, int, float64, *big.Int:
		text, err := jq.EncodeJSON(v)
		if err != nil {
			return "", "has no JSON form"
		}
		return string(text), ValueViolation(string(text))
	}
	return "", fmt.Sprintf("is %s instead of a text, a number or a boolean", jq.TypeName(result))
}
