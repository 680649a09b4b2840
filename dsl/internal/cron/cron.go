// Package cron reads cron expressions in the syntax that all cron programs share: five fields of numbers, names,
// ranges, lists and steps, and the well-known names for whole expressions. Package firing computes when they are due.
package cron

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// field is one field of a cron expression: its range, and names for its values from the lowest on.
type field struct {
	name      string
	low, high int
	names     string
}

func all() []field {
	return []field{
		{"minute", 0, 59, ""},
		{"hour", 0, 23, ""},
		{"day of the month", 1, 31, ""},
		{"month", 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"},
		{"day of the week", 0, 7, "sun mon tue wed thu fri sat"},
	}
}

const (
	days, weekdays       = 2, 4 // among all fields
	sunday, secondSunday = 0, 7 // among the days of the week
)

// Expression holds the values that each field of a cron expression allows, as one bit for each value. Sunday is 0.
type Expression struct{ Minutes, Hours, Days, Months, Weekdays uint64 }

// names returns the expressions that the well-known names stand for.
func names() map[string]string {
	return map[string]string{
		"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *",
	}
}

// Check returns an error if an expression is invalid.
func Check(text string) error {
	_, err := Parse(text)
	return err
}

// Parse reads an expression. Its error completes "the expression is invalid: ".
func Parse(text string) (Expression, error) {
	parts := strings.Fields(text)
	if len(parts) == 1 && strings.HasPrefix(parts[0], "@") {
		standsFor, known := names()[parts[0]]
		if !known {
			return Expression{}, fmt.Errorf("there is no %q", parts[0])
		}
		parts = strings.Fields(standsFor)
	}
	fields := all()
	if len(parts) != len(fields) {
		return Expression{}, fmt.Errorf("it has %d fields instead of %d", len(parts), len(fields))
	}
	allowed := make([]uint64, len(fields))
	for i, f := range fields {
		values, err := f.parse(parts[i])
		if err != nil {
			return Expression{}, fmt.Errorf("%s: %w", f.name, err)
		}
		allowed[i] = values
	}
	if !strings.HasPrefix(parts[days], "*") && !strings.HasPrefix(parts[weekdays], "*") {
		return Expression{}, errors.New("cron programs disagree on what a day of the month together with a day of the week " +
			"means; leave one of them *")
	}
	e := Expression{allowed[0], allowed[1], allowed[2], allowed[3], allowed[4]}
	if has(e.Weekdays, secondSunday) {
		e.Weekdays |= 1 << sunday
	}
	if !anyDay(e.Months, e.Days) {
		return Expression{}, errors.New("there is no such day in any of its months")
	}
	return e, nil
}

// String returns the expression as lists of numbers, in which Sunday is 0.
func (e Expression) String() string {
	fields, texts := all(), []string{}
	fields[weekdays].high = secondSunday - 1
	for i, allowed := range []uint64{e.Minutes, e.Hours, e.Days, e.Months, e.Weekdays} {
		f := fields[i]
		var list []string
		for n := f.low; n <= f.high; n++ {
			if has(allowed, n) {
				list = append(list, strconv.Itoa(n))
			}
		}
		if len(list) == f.high-f.low+1 {
			list = []string{"*"}
		}
		texts = append(texts, strings.Join(list, ","))
	}
	return strings.Join(texts, " ")
}

func has(set uint64, n int) bool { return set>>n&1 == 1 }

// parse returns the values that a field allows.
func (f field) parse(text string) (out uint64, err error) {
	for item := range strings.SplitSeq(text, ",") {
		span, stepText, stepped := strings.Cut(item, "/")
		step := 1
		if stepped {
			n, err := strconv.Atoi(stepText)
			if err != nil || n < 1 {
				return 0, fmt.Errorf("the step %q is not a positive number", stepText)
			}
			step = n
		}
		low, high := f.low, f.high
		if span != "*" {
			first, last, isRange := strings.Cut(span, "-")
			if low, err = f.value(first); err != nil {
				return 0, err
			}
			switch {
			case isRange:
				if high, err = f.value(last); err != nil {
					return 0, err
				}
			case !stepped:
				high = low
			}
			if low > high {
				return 0, fmt.Errorf("the range %q goes backwards", span)
			}
		}
		for n := low; n <= high; n += step {
			out |= 1 << n
		}
	}
	return out, nil
}

func (f field) value(text string) (int, error) {
	if i := slices.Index(strings.Fields(f.names), strings.ToLower(text)); i >= 0 {
		return f.low + i, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || strings.HasPrefix(text, "+") || n < f.low || n > f.high {
		return 0, fmt.Errorf("%q is not between %d and %d", text, f.low, f.high)
	}
	return n, nil
}

// anyDay reports whether one of the months can have one of the days.
func anyDay(months, days uint64) bool {
	lengths := []int{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	for i, length := range lengths {
		if has(months, i+1) && days&(1<<(length+1)-1) != 0 {
			return true
		}
	}
	return false
}
