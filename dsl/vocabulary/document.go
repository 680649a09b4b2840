package vocabulary

const (
	namePattern   = `^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`
	semverPattern = `^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-+].+)?$`
)

// Names of types that other types refer to.
const (
	typeAny        = "any"
	typeText       = "text"
	typeTexts      = "texts"
	typeTextMap    = "text map"
	typeTags       = "tags"
	typeObject     = "free object"
	typeBoolean    = "boolean"
	typeInteger    = "integer"
	typeExpression = "expression"
	typeWrapped    = "wrapped expression"
	typeMapping    = "mapping"
	typeDuration   = "duration"
	typeName       = "name"
	typeVersion    = "version"
	typeTasks      = "tasks"
	typeFlow       = "flow"
	typeURI        = "uri"
	typeTimeout    = "timeout"
	typeInput      = "input"
	typeOutput     = "output"
	typeExport     = "export"
	typeEndpoint   = "endpoint"
	typeAuth       = "authentication"
	typeError      = "error"
	typeRetry      = "retry"
	typeStrategy   = "strategy"
	typeFilter     = "event filter"
	typeRead       = "read"
	typeSchema     = "schema"
	typeResource   = "resource"
	typeTextOrMap  = "text map or expression"
	typeVariable   = "variable"
)

func documentTypes() []Type {
	return []Type{
		{Name: typeAny, Form: Any},
		{Name: typeText, Form: Text},
		{Name: typeTexts, Form: List, Item: typeText},
		{Name: typeTextMap, Form: Map, Item: typeText},
		{Name: typeTags, Form: Map, Item: typeText},
		{Name: typeObject, Form: Map, Item: typeAny},
		{Name: typeBoolean, Form: Boolean},
		{Name: typeInteger, Form: Integer},
		{Name: typeExpression, Form: Expression},
		{Name: typeWrapped, Form: Wrapped},
		{Name: typeMapping, Form: Choice, Options: []string{typeExpression, typeObject}},
		{Name: typeTextOrMap, Form: Choice, Options: []string{typeWrapped, typeTextMap}},
		{Name: typeName, Form: Text, Pattern: namePattern},
		{Name: typeVariable, Form: Text, Pattern: `^[A-Za-z_][A-Za-z0-9_]*$`},
		{Name: typeVersion, Form: Text, Pattern: semverPattern},
		{Name: typeURI, Form: Text},
		{Name: Document, Form: Structure, Keys: []Key{
			{"document", "header", true, "Identity and version of the workflow."},
			{"input", typeInput, false, "Checks and maps the input of a run."},
			{"use", "use", false, "Reusable parts that tasks refer to by name."},
			{"do", typeTasks, true, "The tasks, in order."},
			{"timeout", typeTimeout, false, "Limit of the duration of a run: a duration, or the name of one under `use.timeouts`."},
			{"output", typeOutput, false, "Checks and maps the output of a run."},
			{"schedule", "schedule", false, "What starts runs: exactly one of `every`, `cron`, `after` and `on`."},
			{"evaluate", "evaluate", false, "How expressions are evaluated."},
		}},
		{Name: "header", Form: Structure, Keys: []Key{
			{"dsl", "dsl version", true, "Version of the language, such as `'1.0.3'`."},
			{"namespace", typeName, true, "Namespace of the workflow: letters, digits and inner hyphens."},
			{"name", typeName, true, "Name of the workflow: letters, digits and inner hyphens."},
			{"version", typeVersion, true, "Semantic version of the workflow. A published version does not change."},
			{"title", typeText, false, "Title for people."},
			{"summary", typeText, false, "What the workflow does, for people."},
			{"tags", typeTags, false, "Texts by name, for people and tools."},
			{"metadata", "document metadata", false, "Further data. `labels` in it gives every run labels."},
		}},
		{Name: "document metadata", Form: Map, Item: typeAny, Keys: []Key{
			{"signalbox", "platform settings", false, "Settings of the platform."},
		}},
		{Name: "platform settings", Form: Structure, Keys: []Key{
			{"schedule", "schedule settings", false, "Settings of `schedule.cron` and `schedule.every`."},
		}},
		{Name: "schedule settings", Form: Structure, Keys: []Key{
			{"timezone", typeText, false, "Time zone of `cron`, by its IANA name such as `Europe/Berlin`; UTC by default."},
			{"overlap", "overlap", false, "What happens when the schedule fires while a run that it started is open."},
			{"jitter", typeDuration, false, "The longest random delay of a fire."},
			{"catchup", typeDuration, false, "The age up to which a missed fire is made up for; ten minutes by default."},
		}},
		{Name: "overlap", Form: Text, Words: []string{"allow", "skip", "queue one", "cancel the open one"}},
		{Name: "dsl version", Form: Text, Pattern: `^1\.0\..+$`},
		{Name: "evaluate", Form: Structure, Keys: []Key{
			{"language", "expression language", false, "Language of expressions: `jq`."},
			{"mode", "expression mode", false, "`strict` (default): expressions are in `${ }`. `loose`: each text that compiles is one."},
		}},
		{Name: "expression language", Form: Text, Words: []string{"jq"}},
		{Name: "expression mode", Form: Text, Words: []string{"strict", "loose"}},
		{Name: "use", Form: Structure, Keys: []Key{
			{"authentications", "authentications", false, "Authentication policies by name, for endpoints."},
			{"catalogs", "catalogs", false, "Catalogs of functions by name."},
			{"errors", "errors", false, "Errors by name, for `raise`."},
			{"extensions", "extensions", false, "Tasks that run before and after other tasks."},
			{"functions", "functions", false, "Functions by name: tasks that `call` runs."},
			{"retries", "retries", false, "Retry policies by name, for `catch.retry`."},
			{"secrets", "secrets", false, "Names of the secrets that the workflow uses, as `$secrets.NAME`."},
			{"timeouts", "timeouts", false, "Timeouts by name."},
		}},
		{Name: "authentications", Form: Map, Item: "authentication policy"},
		{Name: "catalogs", Form: Map, Item: "catalog"},
		{Name: "errors", Form: Map, Item: "error definition"},
		{Name: "functions", Form: Map, Item: Task},
		{Name: "retries", Form: Map, Item: "retry policy"},
		{Name: "timeouts", Form: Map, Item: "timeout definition"},
		{Name: "secrets", Form: List, Item: typeText},
		{Name: "extensions", Form: Named, Item: "extension"},
		{Name: "extension", Form: Structure, AnyOf: []string{"before", "after"}, Keys: []Key{
			{"extend", "extended", true, "The kind of the tasks that it extends, or `all`."},
			{"when", typeExpression, false, "Condition on the input of the extended task."},
			{"before", typeTasks, false, "Tasks that run before the extended task."},
			{"after", typeTasks, false, "Tasks that run after the extended task."},
		}},
		{Name: "extended", Form: Text, Words: []string{"all", "call", "composite", "emit", "for", "listen", "raise", "run",
			"set", "switch", "try", "wait"}},
		{Name: "catalog", Form: Structure, Keys: []Key{
			{"endpoint", "resource endpoint", true, "Root of the catalog: its functions are in the folder `functions` below it."},
		}},
		{Name: "schedule", Form: Structure, OneOf: []string{"every", "cron", "after", "on"}, Keys: []Key{
			{"every", typeDuration, false, "Starts a run at this interval, of at least a second."},
			{"cron", typeText, false, "Starts runs at these times, in UTC or the time zone of `metadata.signalbox.schedule`: minute, hour, day, month, day of the week; or `@daily`."},
			{"after", typeDuration, false, "Starts a run at this time after the end of the one before."},
			{"on", "trigger", false, "Starts a run for events. Its input is the array of them."},
			{"read", typeRead, false, "What of an event is in the input: `envelope` (default), `data` or `raw`."},
		}},
		{Name: typeTimeout, Form: Choice, Options: []string{"timeout reference", "timeout definition"}},
		{Name: "timeout reference", Form: Text, Target: TargetTimeouts},
		{Name: "timeout definition", Form: Structure, Keys: []Key{
			{"after", typeDuration, true, "The longest duration."},
		}},
		{Name: typeDuration, Form: Choice, Options: []string{"duration text", "duration object"}},
		{Name: "duration text", Form: Text},
		{Name: "duration object", Form: Structure, Least: 1, Keys: []Key{
			{"days", "count", false, "Days of 24 hours."},
			{"hours", "count", false, "Hours."},
			{"minutes", "count", false, "Minutes."},
			{"seconds", "count", false, "Seconds."},
			{"milliseconds", "count", false, "Milliseconds."},
		}},
		{Name: "count", Form: Choice, Options: []string{typeInteger, typeText}},
		{Name: typeInput, Form: Structure, Keys: []Key{
			{"schema", typeSchema, false, "JSON Schema that the raw input must match."},
			{"from", typeMapping, false, "Maps the raw input: an expression, or an object with expressions in it."},
		}},
		{Name: typeOutput, Form: Structure, Keys: []Key{
			{"schema", typeSchema, false, "JSON Schema that the output must match."},
			{"as", typeMapping, false, "Maps the raw output: an expression, or an object with expressions in it."},
		}},
		{Name: typeExport, Form: Structure, Keys: []Key{
			{"schema", typeSchema, false, "JSON Schema that the context must match."},
			{"as", typeMapping, false, "The new `$context`: an expression, or an object with expressions in it."},
		}},
		{Name: typeSchema, Form: Structure, OneOf: []string{"document", "resource"}, Keys: []Key{
			{"format", "schema format", false, "Format of the schema: `json`."},
			{"document", typeAny, false, "The schema."},
			{"resource", typeResource, false, "A file or an address that has the schema."},
		}},
		{Name: "schema format", Form: Text, Words: []string{"json"}},
		{Name: typeResource, Form: Structure, Keys: []Key{
			{"name", typeText, false, "Name of the resource, for people."},
			{"endpoint", "resource endpoint", true, "Path beside the document, or URI."},
		}},
		{Name: "resource endpoint", Form: Choice, Options: []string{typeURI, "endpoint object"}},
	}
}
