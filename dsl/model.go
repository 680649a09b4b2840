package dsl

// Document is one valid workflow definition. It is immutable once parsed and safe for concurrent use.
type Document struct {
	DSL       string
	Namespace string
	Name      string
	Version   string
	Title     string
	Summary   string
	Tags      map[string]string
	Metadata  map[string]any
	Labels    []Label // of metadata, in the order of the document

	Input  *Input
	Output *Output
	Use    Use
	// Extensions are those of use, in the order of the document: the first is around the second.
	Extensions []*Extension
	Do         []*Task
	Timeout    *Timeout  // from the document or, by name, from use.timeouts
	Schedule   *Schedule // nil: runs start on request only
	Evaluate   Evaluate

	// Resources are the texts outside the document that it refers to, by URI.
	Resources []Resource
	// Programs are the programs of its tasks.
	Programs []UsedProgram
	// Partial reports that resources were postponed: what needs them is not in the document, and its hash is not that of
	// the whole.
	Partial bool

	// Definition is the document as a plain JSON value, the value of $workflow.definition. It must not be changed.
	Definition any

	canonical []byte
	memory    int64
	hash      string
}

// Evaluate defines how expressions are recognised. Strict, the default, recognises only strings in ${ }. Loose also
// recognises whole strings that start with "." or "$" and compile.
type Evaluate struct {
	Language string // always "jq"
	Loose    bool
}

// Use lists the names of the reusable parts that a document defines, sorted. Tasks already hold the parts they refer
// to.
type Use struct {
	Authentications []string
	Errors          []string
	Retries         []string
	Timeouts        []string
	Functions       []string
	Catalogs        []string
	Secrets         []DeclaredSecret // in the order of the document
}

// Task is one named task of a list.
type Task struct {
	Name    string
	Pointer string // JSON pointer of the task in its document, e.g. /do/0/tryGetPet/try/0/getPet
	Index   int    // position in its list
	Pos     Pos    // of its name

	If       *Expr
	Input    *Input
	Output   *Output
	Export   *Export
	Timeout  *Timeout // inline or, by name, from use.timeouts
	Then     Flow
	Metadata map[string]any
	Body     Body

	// Definition is the task as a plain JSON value, the value of $task.definition. It must not be changed.
	Definition any
}

// Input validates and maps the input of a workflow or task: first Schema on the raw value, then From.
type Input struct {
	Schema *Schema
	From   *Template
}

// Output maps and validates the output of a workflow or task: first As, then Schema on its result.
type Output struct {
	Schema *Schema
	As     *Template
}

// Export computes the next $context from a task's output: first As, then Schema on its result.
type Export struct {
	Schema *Schema
	As     *Template
}

// FlowKind is the kind of step that follows a task.
type FlowKind int

// The flow directives. The zero value continues with the next task of the list.
const (
	FlowContinue FlowKind = iota
	FlowExit              // leave the current list of tasks
	FlowEnd               // end the workflow
	FlowGoto              // continue with a named task of the same list
)

// Flow is a flow directive. Task is the target of FlowGoto, and always exists in the same list.
type Flow struct {
	Kind FlowKind
	Task string
}

// Kind names a kind of task by its keyword; a call of any kind is "call".
type Kind string

// The kinds of tasks this version runs.
const (
	KindDo     Kind = "do"
	KindSet    Kind = "set"
	KindSwitch Kind = "switch"
	KindFor    Kind = "for"
	KindFork   Kind = "fork"
	KindWait   Kind = "wait"
	KindRaise  Kind = "raise"
	KindTry    Kind = "try"
	KindCall   Kind = "call"
	KindListen Kind = "listen"
	KindEmit   Kind = "emit"
	KindRun    Kind = "run"
)

// Body is what a task of one kind does: *Do, *Set, *Switch, *For, *Fork, *Wait, *Raise, *Try, *HTTPCall, *OpenAPICall,
// *GoCall, *FunctionCall, *Listen, *Emit, *RunWorkflow or *RunProgram.
type Body interface{ Kind() Kind }

// Do runs its tasks in order.
type Do struct{ Tasks []*Task }

// Set makes its value the task's output.
type Set struct{ Value *Template }

// Switch continues with the flow directive of the first case that holds; if none holds, the task's own Then applies.
type Switch struct{ Cases []Case }

// Case is one case of a switch. A nil When always holds.
type Case struct {
	Name string
	When *Expr
	Then Flow
	Pos  Pos
}

// For runs its tasks once per item of In, while While holds. In is an expression or a literal array.
type For struct {
	Each, At string // names of the variables, without "$"; "item" and "index" by default
	In       *Expr
	While    *Expr // may use Each and At; nil holds always
	Tasks    []*Task
}

// Fork runs its branches at the same time. With Compete the output is that of the first branch to complete, otherwise
// the array of all outputs in the order of the branches.
type Fork struct {
	Compete  bool
	Branches []*Task
}

// Wait sleeps for a duration.
type Wait struct{ Duration *Duration }

// Raise raises an error.
type Raise struct{ Error *ErrorDef }

// ErrorDef is an error as a document defines it. Title, Detail and Instance are nil where they are not given.
type ErrorDef struct {
	Type     *Template
	Status   int
	Title    *Template
	Detail   *Template
	Instance *Template
}

// Try runs its tasks and catches their errors.
type Try struct {
	Tasks []*Task
	Catch *Catch
}

// Catch defines which errors of a try are caught, whether the try is retried, and which tasks handle the error after
// that.
type Catch struct {
	Errors     *ErrorFilter // nil matches every error
	As         string       // name of the variable that holds the error, without "$"; "error" by default
	When       *Expr        // nil holds always
	ExceptWhen *Expr        // nil never holds
	Retry      *RetryPolicy
	Tasks      []*Task // nil where there is no handler
	Then       Flow    // see HasThen
	// whether the catch has a directive: also an explicit "continue" takes precedence over the task's own
	HasThen bool
	Pos     Pos // of the key
}

// Handles reports whether the catch ends the try after a caught error, rather than raising the error again once the
// retries are exhausted.
func (c *Catch) Handles() bool { return c.Retry == nil || c.Tasks != nil || c.HasThen }

// ErrorFilter matches errors by equal members; nil members match anything. Types are compared with [SameErrorType].
type ErrorFilter struct {
	Type, Title, Detail, Instance *string
	Status                        *int
}

// BackoffKind is how the delay between attempts grows.
type BackoffKind string

// The kinds of back-off. Constant is the default.
const (
	BackoffConstant    BackoffKind = "constant"
	BackoffLinear      BackoffKind = "linear"
	BackoffExponential BackoffKind = "exponential"
)

// RetryPolicy defines whether and when a failed try runs again. Members that are not given are nil or zero.
type RetryPolicy struct {
	When       *Expr
	ExceptWhen *Expr
	Delay      *Duration
	Backoff    Backoff
	Limit      RetryLimit
	Jitter     *Jitter
}

// Backoff is the growth of delays between attempts. Definition is the object given under the kind.
type Backoff struct {
	Kind       BackoffKind
	Definition map[string]any
}

// RetryLimit limits a policy by attempts and by time. A Count of zero is no limit.
type RetryLimit struct {
	Attempt  AttemptLimit
	Duration *Duration
}

// AttemptLimit limits the number of attempts and the duration of each.
type AttemptLimit struct {
	Count    int
	Duration *Duration
}

// Jitter is the range of the random duration that is added to each delay.
type Jitter struct{ From, To *Duration }

// Timeout ends a workflow or a task that takes longer than After.
type Timeout struct{ After *Duration }

// HTTPOutput is the form of an HTTP call's output.
type HTTPOutput string

// The forms of an HTTP call's output. Content, the default, is the decoded body.
const (
	OutputContent  HTTPOutput = "content"
	OutputRaw      HTTPOutput = "raw"
	OutputResponse HTTPOutput = "response"
)

// HTTPCall calls a service over HTTP. Members that are not given are nil. Method is as written; the caller upper-cases
// it.
type HTTPCall struct {
	Method   *Template
	Endpoint *Template // evaluates to a URI template; see URI
	Headers  *Template // evaluates to an object of strings
	Query    *Template // evaluates to an object of strings
	Body     *Template
	Output   HTTPOutput
	// Authentication is nil where there is none.
	Authentication *Authentication
	Redirect       bool // treat a status of 300 to 399 as a success instead of an error
}

// Kind implements Body.
func (*Do) Kind() Kind { return KindDo }

// Kind implements Body.
func (*Set) Kind() Kind { return KindSet }

// Kind implements Body.
func (*Switch) Kind() Kind { return KindSwitch }

// Kind implements Body.
func (*For) Kind() Kind { return KindFor }

// Kind implements Body.
func (*Fork) Kind() Kind { return KindFork }

// Kind implements Body.
func (*Wait) Kind() Kind { return KindWait }

// Kind implements Body.
func (*Raise) Kind() Kind { return KindRaise }

// Kind implements Body.
func (*Try) Kind() Kind { return KindTry }

// Kind implements Body.
func (*HTTPCall) Kind() Kind { return KindCall }

// InputSchema is the JSON Schema of the workflow's input as JSON, in the order of the document; nil if it has none. It
// must not be changed.
func (d *Document) InputSchema() []byte {
	if d.Input == nil || d.Input.Schema == nil {
		return nil
	}
	return d.Input.Schema.JSON
}

// Canonical is the document as JSON with sorted keys and no space: the same for every spelling of the document. With
// resources it has their hashes too. [Unpack] makes a document of it that parses to an equal one. The caller must not
// change it.
func (d *Document) Canonical() []byte { return d.canonical }

// Memory is an estimate of the memory that the document uses, in bytes.
func (d *Document) Memory() int64 { return d.memory }

// Hash identifies the document's content, that of its resources included: "sha256:" and the hexadecimal SHA-256 of its
// canonical form.
func (d *Document) Hash() string { return d.hash }
