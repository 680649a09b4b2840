package main

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// The units of panels. A number of things has the unit count, also where a bar shows those of its interval.
const (
	seconds   = units.Seconds
	bytes     = units.BytesIEC
	ratio     = units.PercentUnit
	perSecond = units.CountsPerSecond
	count     = units.Short
)

const (
	pages = "https://github.com/signalbox-dev/signalbox/blob/main/docs/runbooks/"
	tag   = "signalbox"
	width = 24 // of a dashboard, in Grafana's columns
	high  = 8
	// schema is the version of the dashboards' schema of Grafana 11.0. Later versions of Grafana migrate it when they load
	// it.
	schema = 39
)

// board is one dashboard.
type board struct {
	name, title, description string
	// byProject: it has the variable project.
	byProject bool
	rows      []row
}

// row is a titled part of a dashboard. Its panels have the same width.
type row struct {
	title  string
	panels []panel
}

// panel is one picture.
type panel struct {
	title string
	// about states what the panel shows, and what a reader could misunderstand. The links of the runbooks are appended.
	about    string
	runbooks []string
	unit     string
	queries  []query
	// from and below are the limits of the alerts: values of at least from, or less than below, are marked.
	from  []float64
	below []float64
	// states are the texts of all values, for a panel that shows states over time.
	states []state
	colors []color
	// bars are drawn for numbers that belong to an interval.
	bars bool
	// top is the axis's maximum; 0: automatic. The axis of a signed panel shows values below zero.
	top    float64
	signed bool
}

// query is an expression with the name of its series.
type query struct{ expr, legend string }

func (b board) build() (dashboard.Dashboard, error) {
	d := dashboard.NewDashboardBuilder(b.title).
		Uid(tag+"-"+b.name).Description(b.description).Tags([]string{tag}).
		Readonly().Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Time("now-6h", "now").Refresh("30s").Timezone("browser").
		Link(dashboard.NewDashboardLinkBuilder("Signalbox").Type(dashboard.DashboardLinkTypeDashboards).Icon("dashboard").
			Tags([]string{tag}).IncludeVars(true).KeepTime(true)).
		Link(dashboard.NewDashboardLinkBuilder("Runbooks").Type(dashboard.DashboardLinkTypeLink).Icon("doc").Url(pages +
			"README.md").TargetBlank(true)).
		Annotation(dashboard.NewAnnotationQueryBuilder().Name("Firing alerts").Datasource(source()).Enable(true).
			IconColor(red).
			Target(firing()))
	d.WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Prometheus").Type("prometheus"))
	if b.byProject {
		d.WithVariable(choice("project", "Project", "label_values(dispatcher_inbox_pending, project)"))
	}
	d.WithVariable(choice("instance", "Server", "label_values(temporal_connection_status, instance)"))
	id := uint32(1)
	for _, r := range b.rows {
		d.WithRow(dashboard.NewRowBuilder(r.title).Id(id))
		id++
		for n, p := range r.panels {
			d.WithPanel(p.build(id, span(n, len(r.panels))))
			id++
		}
	}
	built, err := d.Build()
	built.SchemaVersion = schema
	return built, err
}

// span returns the width of the panel n of a row: three beside each other, the last ones share the rest.
func span(n, panels int) uint32 {
	const beside = 3
	if rest := panels % beside; rest > 0 && n >= panels-rest {
		return uint32(width / rest) //nolint:gosec // at most 24
	}
	return width / beside
}

func source() common.DataSourceRef {
	return common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}
}

// choice is a variable of which all values, or some, can be chosen. All is a pattern that matches also a label without
// a value, such as the project of a problem of the whole platform.
func choice(name, label, definition string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).Label(label).Datasource(source()).
		Query(dashboard.StringOrMap{Map: map[string]any{"query": definition, "refId": "variable"}}).Definition(definition).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc).
		Multi(true).IncludeAll(true).AllValue(".*").
		Current(dashboard.VariableOption{
			Text:  dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
			Value: dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
		})
}

// firing is the query of the annotations: the names and severities of the alerts that fire.
func firing() *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().RefId("Alerts").
		Expr(`count by (alertname, severity) (ALERTS{alertstate="firing"})`).
		LegendFormat("{{alertname}} ({{severity}})").Range().Interval("1m")
}

func (p panel) build(id, columns uint32) cog.Builder[dashboard.Panel] {
	if p.states != nil {
		return p.timeline(id, columns)
	}
	return p.graph(id, columns)
}

// description is what Grafana shows at the panel's title, in Markdown.
func (p panel) description() string {
	text := p.about
	if p.bars {
		text += " A bar counts what happened in its own interval."
	}
	var links []string
	for _, name := range p.runbooks {
		links = append(links, fmt.Sprintf("[%s](%s%s.md)", name, pages, name))
	}
	switch len(links) {
	case 0:
	case 1:
		text += "\n\nRunbook: " + links[0]
	default:
		text += "\n\nRunbooks: " + strings.Join(links, ", ")
	}
	return text
}

func (p panel) graph(id, columns uint32) cog.Builder[dashboard.Panel] {
	g := timeseries.NewPanelBuilder().Id(id).Title(p.title).Description(p.description()).Datasource(source()).
		Span(columns).Height(high).
		Unit(p.unit).NoValue("unknown").
		SpanNulls(common.BoolOrFloat64{Bool: new(false)}).ShowPoints(common.VisibilityModeAuto).LineWidth(2).
		// Series whose names are not known, such as those of projects, have shades of one colour, which differ in lightness.
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdShades).FixedColor(blue)).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeTable).
			Placement(common.LegendPlacementBottom).
			ShowLegend(true).Calcs([]string{"lastNotNull", "max"})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if !p.signed {
		g.Min(0)
	}
	if p.top > 0 {
		g.Max(p.top)
	}
	if p.bars {
		g.DrawStyle(common.GraphDrawStyleBars).FillOpacity(80).
			Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
	}
	if steps := p.steps(); len(steps) > 1 {
		g.Thresholds(dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)).
			ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	for _, c := range p.colors {
		g.OverrideByRegexp("/"+c.pattern+"/", []dashboard.DynamicConfigValue{
			{Id: "color", Value: map[string]any{"mode": "fixed", "fixedColor": c.color}},
		})
	}
	for n, q := range p.queries {
		g.WithTarget(p.target(n, q))
	}
	return g
}

// steps are the limits in ascending order, the first one without a value. What is beyond a limit is red.
func (p panel) steps() []dashboard.Threshold {
	inside, outside := blue, red
	if len(p.below) > 0 {
		inside, outside = red, blue
	}
	all := []dashboard.Threshold{{Color: inside}}
	for n, limit := range append(p.below, p.from...) {
		step := dashboard.Threshold{Value: new(limit), Color: outside}
		if n+1 < len(p.from) {
			step.Color = orange // the lower one of two
		}
		all = append(all, step)
	}
	return all
}

func (p panel) timeline(id, columns uint32) cog.Builder[dashboard.Panel] {
	texts := map[string]dashboard.ValueMappingResult{}
	for n, s := range p.states {
		texts[s.value] = dashboard.ValueMappingResult{Text: new(s.text), Color: new(s.color), Index: new(int32(n))}
	}
	g := statetimeline.NewPanelBuilder().Id(id).Title(p.title).Description(p.description()).Datasource(source()).
		Span(columns).Height(high).
		Unit(p.unit).NoValue("unknown").
		Mappings([]dashboard.ValueMapping{
			{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: texts}},
			{SpecialValueMap: &dashboard.SpecialValueMap{
				Type: dashboard.MappingTypeSpecialValue,
				Options: dashboard.DashboardSpecialValueMapOptions{
					Match: dashboard.SpecialValueMatchNullAndNan,
					Result: dashboard.ValueMappingResult{
						Text: new("unknown"), Color: new(grey), Index: new(int32(len(p.states)))}, //nolint:gosec // a few
				},
			}},
		}).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)).
		Thresholds(dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).
			Steps([]dashboard.Threshold{{Color: grey}})).
		ShowValue(common.VisibilityModeAlways).MergeValues(true).
		RowHeight(0.8). //nolint:mnd // Grafana's default leaves no space between rows
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).
			Placement(common.LegendPlacementBottom).ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderNone))
	for n, q := range p.queries {
		g.WithTarget(p.target(n, q))
	}
	return g
}

func (p panel) target(n int, q query) *prometheus.DataqueryBuilder {
	target := prometheus.NewDataqueryBuilder().RefId("ABCDEF"[n : n+1]).Datasource(source()).Expr(q.expr).
		LegendFormat(q.legend).Range()
	if p.bars {
		target.Interval("1m")
	}
	return target
}
