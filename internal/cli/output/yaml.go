package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// writeYAML turns JSON into YAML token by token: members keep their order and numbers all their digits.
func writeYAML(w io.Writer, text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	node, err := yamlNode(decoder)
	if err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(node), encoder.Close()); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	_, err = w.Write(terminal.JSON(out.Bytes())) // in quotes, YAML has JSON's escapes
	return err
}

func yamlNode(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			return yamlCollection(decoder, yaml.SequenceNode)
		}
		return yamlCollection(decoder, yaml.MappingNode)
	case string:
		node := &yaml.Node{}
		err := node.Encode(token) // also quotes what YAML 1.1 would read as a boolean
		if strings.ContainsFunc(token, terminal.Unsafe) {
			node.Style = yaml.DoubleQuotedStyle
		}
		return node, err
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: token.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(token)}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}, nil
	}
}

// yamlCollection reads up to the closing bracket; an object's keys and values alternate, as YAML's nodes do.
func yamlCollection(decoder *json.Decoder, kind yaml.Kind) (*yaml.Node, error) {
	node := &yaml.Node{Kind: kind}
	for decoder.More() {
		child, err := yamlNode(decoder)
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, child)
	}
	if len(node.Content) == 0 {
		node.Style = yaml.FlowStyle // [] and {}, not nothing
	}
	_, err := decoder.Token()
	return node, err
}
