package graph

import (
	"cmp"
	"slices"
)

// The sizes and distances of a drawing, in pixels: those of the graphs in the web UI.
const (
	nodeWidth, nodeHeight         = 208, 52
	terminalWidth, terminalHeight = 120, 32
	headHeight                    = 52 // of a node that contains others, above them
	padding                       = 16
	betweenNodes, betweenLayers   = 28, 36
	laneWidth                     = 14 // of an edge that passes beside nodes
)

// box is the place of a node. Its origin is that of the drawing.
type box struct{ x, y, width, height int }

func (b box) centre() int { return b.x + b.width/2 }
func (b box) bottom() int { return b.y + b.height }
func (b box) right() int  { return b.x + b.width }

// placement is where the nodes of a graph are drawn: in layers from top to bottom, those of one layer in the order of the
// document, and what a node contains inside of it.
type placement struct {
	boxes map[string]*box
	nodes map[string]Node
	// children are the IDs of the nodes in a node, in the order of the document; those at the top are in "".
	children map[string][]string
	layers   map[string]int
	// lanes are the edges that pass beside the nodes of a node, in the order from the inside.
	lanes map[string][]int
	graph Graph
}

func place(g Graph) *placement {
	p := &placement{boxes: map[string]*box{}, nodes: map[string]Node{}, children: map[string][]string{},
		layers: map[string]int{}, lanes: map[string][]int{}, graph: g}
	for _, n := range g.Nodes {
		p.nodes[n.ID] = n
		p.children[n.Parent] = append(p.children[n.Parent], n.ID)
	}
	p.boxes[""] = &box{}
	p.size("")
	p.move("", 0, 0)
	return p
}

// ancestors returns a node and the nodes that contain it, from the outside.
func (p *placement) ancestors(id string) []string {
	var out []string
	for id != "" {
		out = append(out, id)
		id = p.nodes[id].Parent
	}
	slices.Reverse(out)
	return out
}

// common returns the innermost node that contains both ends of an edge, and the nodes directly in it that are or contain
// the ends. One of these is empty if that end is the containing node itself.
func (p *placement) common(e Edge) (around, from, to string) {
	a, b := p.ancestors(e.From), p.ancestors(e.To)
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		around = a[i]
		i++
	}
	if i < len(a) {
		from = a[i]
	}
	if i < len(b) {
		to = b[i]
	}
	return around, from, to
}

// size computes the layers of the nodes in a node, their places in it, and its size.
func (p *placement) size(id string) {
	inner := p.children[id]
	for _, child := range inner {
		p.boxes[child] = &box{width: nodeWidth, height: nodeHeight}
		if kind := p.nodes[child].Kind; kind == Start || kind == End {
			*p.boxes[child] = box{width: terminalWidth, height: terminalHeight}
		}
		if len(p.children[child]) > 0 {
			p.size(child)
		}
	}
	p.assignLayers(id)
	var rows [][]string
	for _, child := range inner {
		for len(rows) <= p.layers[child] {
			rows = append(rows, nil)
		}
		rows[p.layers[child]] = append(rows[p.layers[child]], child)
	}
	width := nodeWidth
	for _, row := range rows {
		width = max(width, p.rowWidth(row))
	}
	left, y := padding, padding
	if id != "" {
		y += headHeight
	}
	for _, row := range rows {
		x, height := left+(width-p.rowWidth(row))/2, 0
		for _, child := range row {
			b := p.boxes[child]
			b.x, b.y = x, y
			x += b.width + betweenNodes
			height = max(height, b.height)
		}
		y += height + betweenLayers
	}
	p.boxes[id].width = width + 2*padding + laneWidth*len(p.lanes[id])
	p.boxes[id].height = y - betweenLayers + padding
}

func (p *placement) rowWidth(row []string) int {
	width := betweenNodes * max(0, len(row)-1)
	for _, child := range row {
		width += p.boxes[child].width
	}
	return width
}

// assignLayers puts each node in a node below those that lead to it. Edges to earlier nodes, and those that pass a
// layer, get lanes.
func (p *placement) assignLayers(id string) {
	order := map[string]int{}
	for i, child := range p.children[id] {
		order[child] = i
	}
	type link struct {
		from, to string
		edge     int
	}
	var links []link
	for i, e := range p.graph.Edges {
		if around, from, to := p.common(e); around == id && from != "" && to != "" && from != to {
			links = append(links, link{from, to, i})
		}
	}
	slices.SortStableFunc(links, func(a, b link) int { return cmp.Compare(order[a.from], order[b.from]) })
	for _, l := range links {
		if order[l.to] > order[l.from] {
			p.layers[l.to] = max(p.layers[l.to], p.layers[l.from]+1)
		}
	}
	for _, l := range links {
		if p.layers[l.to] != p.layers[l.from]+1 {
			p.lanes[id] = append(p.lanes[id], l.edge)
		}
	}
}

// move sets the origin of all boxes in a node to that of the drawing.
func (p *placement) move(id string, x, y int) {
	for _, child := range p.children[id] {
		b := p.boxes[child]
		b.x, b.y = b.x+x, b.y+y
		p.move(child, b.x, b.y)
	}
}
