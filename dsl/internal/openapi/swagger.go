package openapi

import (
	"fmt"
	"slices"
)

// separatorKey is the extension by which the separator of a list in a form passes the conversion of a description.
const separatorKey = "x-separator"

// adapt completes a description in the format 2.0 where its conversion would lose the meaning: the separator of lists,
// which is a comma by default, and the type of bodies. https is preferred.
func adapt(part map[string]any, at place) error {
	part["swagger"] = "2.0"
	schemes, _ := part["schemes"].([]any)
	for _, scheme := range []any{"http", "https"} {
		if slices.Contains(schemes, scheme) {
			part["schemes"] = []any{scheme}
		}
	}
	paths, _ := part["paths"].(map[string]any)
	item, _ := paths[at.path].(map[string]any)
	operation, _ := item[at.method].(map[string]any)
	var all []any
	for _, list := range []any{item["parameters"], operation["parameters"]} {
		parameters, _ := list.([]any)
		all = append(all, parameters...)
	}
	shared, _ := part["parameters"].(map[string]any)
	for _, p := range shared {
		all = append(all, p)
	}
	form, file := false, false
	for _, p := range all {
		parameter, _ := p.(map[string]any)
		if parameter["in"] == "formData" {
			form, file = true, file || parameter["type"] == "file"
		}
		if err := adaptList(parameter); err != nil {
			return err
		}
	}
	if operation == nil || operation["consumes"] != nil || part["consumes"] != nil {
		return nil
	}
	switch {
	case file:
		operation["consumes"] = []any{"multipart/form-data"}
	case form:
		operation["consumes"] = []any{typeForm}
	default:
		operation["consumes"] = []any{typeJSON}
	}
	return nil
}

// adaptList completes a parameter that is a list.
func adaptList(parameter map[string]any) error {
	if parameter["type"] != "array" {
		return nil
	}
	format, _ := parameter["collectionFormat"].(string)
	if format == "" {
		format = "csv"
		parameter["collectionFormat"] = format
	}
	separator, known := map[string]string{"csv": ",", "ssv": " ", "pipes": "|", "tsv": "\t", "multi": ""}[format]
	switch in := parameter["in"]; {
	case in == "formData" && known:
		if separator != "" {
			parameter[separatorKey] = separator
		}
	case in == "query" && known && format != "tsv", format == "csv":
	default:
		return fmt.Errorf("the collectionFormat %.20q of the %v parameter %.80q is not supported", format, in,
			fmt.Sprint(parameter["name"]))
	}
	return nil
}
