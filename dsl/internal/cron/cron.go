// Package cron checks cron expressions in the syntax that all cron programs share: five fields of numbers, names,
// ranges, lists and steps, and the well-known names for whole expressions. It does not compute when they are due.
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

// Check returns an error if an expression is invalid.
func Check(text string) error {
	parts := strings.Fields(text)
	if len(parts) == 1 && strings.HasPrefix(parts[0], "@") {
		if names := []string{"@hourly", "@daily", "@weekly", "@monthly", "@yearly"}; !slices.Contains(names, parts[0]) {
			return fmt.Errorf("there is no %q", parts[0])
		}
		return nil
	}
	fields := all()
	if len(parts) != len(fields) {
		return fmt.Errorf("it has %d fields instead of %d", len(parts), len(fields))
	}
	allowed := make([]map[int]bool, len(fields))
	for i, f := range fields {
		values, err := f.parse(parts[i])
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		allowed[i] = values
	}
	const days, months, weekdays = 2, 3, 4
	if !strings.HasPrefix(parts[days], "*") && !strings.HasPrefix(parts[weekdays], "*") {
		return errors.New("cron programs disagree on what a day of the month together with a day of the week means; leave " +
			"one of them *")
	}
	if !anyDay(allowed[months], allowed[days]) {
		return errors.New("there is no such day in any of its months")
	}
	return nil
}

// parse returns the values that a field allows.
func (f field) parse(text string) (map[int]bool, error) {
	out := map[int]bool{}
	for item := range strings.SplitSeq(text, ",") {
		span, stepText, stepped := strings.Cut(item, "/")
		step := 1
		if stepped {
			n, err := strconv.Atoi(stepText)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("the step %q is not a positive number", stepText)
			}
			step = n
		}
		low, high := f.low, f.high
		if span != "*" {
			first, last, isRange := strings.Cut(span, "-")
			var err error
			if low, err = f.value(first); err != nil {
				return nil, err
			}
			switch {
			case isRange:
				if high, err = f.value(last); err != nil {
					return nil, err
				}
			case !stepped:
				high = low
			}
			if low > high {
				return nil, fmt.Errorf("the range %q goes backwards", span)
			}
		}
		for n := low; n <= high; n += step {
			out[n] = true
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
func anyDay(months, days map[int]bool) bool {
	lengths := []int{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	for i, length := range lengths {
		for day := range days {
			if months[i+1] && day <= length {
				return true
			}
		}
	}
	return false
}
