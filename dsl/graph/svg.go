package graph

import (
	"fmt"
	"slices"
	"strings"
)

// SVG draws a graph: nodes in layers from top to bottom, in the order of the document, and what a task contains inside
// of it. Sizes and distances are those of the graphs in the web UI.
func (g Graph) SVG() string {
	p := place(g)
	s := &svg{placement: p}
	all := p.boxes[""]
	s.line(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif">`,
		all.width, all.height)
	s.line(`<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">` +
		`<path d="M0 0 8 4 0 8z" fill="#57606a"/></marker></defs>`)
	s.line(`<rect width="100%%" height="100%%" fill="#ffffff"/>`)
	s.nodes("")
	for i, e := range g.Edges {
		s.edge(i, e)
	}
	s.line("</svg>")
	return s.String()
}

type svg struct {
	strings.Builder
	*placement
}

func (s *svg) line(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// nodes draws the nodes in a node.
func (s *svg) nodes(id string) {
	for _, child := range s.children[id] {
		n, b := s.placement.nodes[child], s.boxes[child]
		radius, fill := 8, "#f6f8fa"
		switch {
		case n.Kind == Start || n.Kind == End:
			radius = b.height / 2
		case len(s.children[child]) > 0:
			fill = "none"
		}
		s.line(`<rect x="%d" y="%d" width="%d" height="%d" rx="%d" fill="%s" stroke="#8c959f"/>`, b.x, b.y, b.width, b.height,
			radius, fill)
		s.texts(n, b)
		s.nodes(child)
	}
}

// texts writes the name of a node, and its kind and label below.
func (s *svg) texts(n Node, b *box) {
	const first, second, small = 21, 39, 20
	if n.Kind == Start || n.Kind == End {
		s.text(b.centre(), b.y+small, `text-anchor="middle" font-size="13"`, strings.TrimSpace(n.Kind+" "+n.Label), b.width)
		return
	}
	below := n.Kind
	if n.Label != "" {
		below += ": " + n.Label
	}
	s.text(b.x+padding, b.y+first, `font-size="13" font-weight="bold"`, n.title(), b.width-2*padding)
	s.text(b.x+padding, b.y+second, `font-size="11" fill="#57606a"`, below, b.width-2*padding)
}

// text writes a text that is cut at a width.
func (s *svg) text(x, y int, attributes, text string, width int) {
	const perCharacter = 7 // the width of most characters at most
	shown, title := []rune(text), ""
	if most := max(1, width/perCharacter); len(shown) > most {
		shown, title = append(shown[:most-1:most-1], '…'), "<title>"+xmlText(text)+"</title>"
	}
	s.line(`<text x="%d" y="%d" %s>%s%s</text>`, x, y, attributes, xmlText(string(shown)), title)
}

// edge draws an edge: straight to the layer below, and beside the nodes otherwise.
func (s *svg) edge(i int, e Edge) {
	from, to := s.boxes[e.From], s.boxes[e.To]
	around, inFrom, inTo := s.common(e)
	style := ""
	var path string
	var x, y int // of the label
	switch lane := slices.Index(s.lanes[around], i); {
	case inFrom == "": // into the list of its own node
		startX, startY := to.centre(), from.y+headHeight
		path, x, y = fmt.Sprintf("M%d %dV%d", startX, startY, to.y), startX, (startY+to.y)/2
	case inTo == "": // the end of the list
		endX := from.centre()
		path, x, y = fmt.Sprintf("M%d %dV%d", endX, from.bottom(), to.bottom()), endX, (from.bottom()+to.bottom())/2
		style = ` stroke-dasharray="3 3"`
	case lane >= 0:
		side := s.boxes[around]
		x = side.right() - laneWidth*(len(s.lanes[around])-lane)
		startY, endY := from.y+from.height/2, to.y+min(to.height, nodeHeight)/2 //nolint:mnd // the middle
		path, y = fmt.Sprintf("M%d %dH%dV%dH%d", from.right(), startY, x, endY, to.right()), (startY+endY)/2
	default:
		middle := (from.bottom() + to.y) / 2 //nolint:mnd // the middle
		path = fmt.Sprintf("M%d %dC%[1]d %[3]d %[4]d %[3]d %[4]d %[5]d", from.centre(), from.bottom(), middle, to.centre(),
			to.y)
		x, y = (from.centre()+to.centre())/2, middle
	}
	s.line(`<path d="%s" fill="none" stroke="#57606a"%s marker-end="url(#end)"/>`, path, style)
	if text := e.text(); text != "" {
		s.text(x, y, `text-anchor="middle" font-size="11" fill="#24292f" stroke="#ffffff" stroke-width="3" paint-order="stroke"`,
			text, nodeWidth)
	}
}

func xmlText(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
