package workflowtest

import (
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
)

// File is a file of test cases for one document.
type File struct {
	// Workflow is the path of the document, relative to the file; empty: the document beside the file.
	Workflow string
	// Resources are the paths, relative to the file, of copies of the texts that the document refers to by an address.
	Resources map[string]string
	// Now, Secrets and Mocks apply to every case that does not set them. The mocks of a case come before these.
	Now     time.Time
	Secrets map[string]any
	Mocks   []Mock
	// Live sends the requests of all cases that no mock answers; nil: such a request fails its case.
	Live  Sender
	Cases []Case
}

// Case is one run of a document, with all that it meets and what it must do.
type Case struct {
	Name string
	// Input is the raw input of the run as a plain JSON value.
	Input any
	// Now is the time at which the run starts; zero: DefaultNow.
	Now time.Time
	// Secrets are the secrets of the project by name: texts, or objects of texts.
	Secrets map[string]any
	Mocks   []Mock
	Events  []Event
	Expect  Expect
	// Live sends requests that no mock answers; nil: such a request fails the case. The clock of the run does not count
	// the time that they take.
	Live Sender

	at location
}

// Mock answers the requests of calls, and the runs that tasks start.
type Mock struct {
	// Task is the name or the pointer of the task whose requests it answers; empty: any.
	Task string
	// When is an expression on the request, in which it holds; empty: always. See Request for the members of a request.
	When string
	// Respond are the responses in order. The last one answers all further requests.
	Respond []Response

	at location
}

// Response is the result of a request: the response of a service, the output of the run that a task awaits, or an
// error.
type Response struct {
	// Status is the HTTP status; 0 means 200.
	Status  int
	Headers map[string]string
	// Body is the body of the response: JSON, or the text itself if the header Content-Type names another type.
	Body    any
	HasBody bool
	// Output is the output of the run that a `run` task awaits.
	Output    any
	HasOutput bool
	// Fail is the error that the call, or the run, ends with instead.
	Fail *Failure
	// Delay is the time from the request to the response.
	Delay time.Duration

	at location
}

// Failure is a call without a response, or the error of a run that a task awaits. Type may be the name of a standard
// error, such as communication. What is not given follows from the type.
type Failure struct {
	Type          string
	Status        int
	Title, Detail string
}

// Event is an event that is published while the run is open.
type Event struct {
	// At is the time after the start of the run. It applies if HasAt is set. Otherwise the event is published when the
	// task Task, or any task if that is empty, waits for an event, after the events before it in the list.
	At    time.Duration
	HasAt bool
	Task  string
	// Event is the event in its CloudEvents JSON form. Attributes that are required and not given are added.
	Event map[string]any

	at location
}

// Expect is what a run must do. What is not set is not checked, except Status.
type Expect struct {
	// Status is completed, failed, timed_out, canceled or waiting. Empty: failed or timed_out if Error is set, else
	// completed. A run is waiting if nothing is left that could continue it.
	Status string
	// Output is the whole output, Contains a part of it: objects may have more members, and the items of arrays likewise.
	Output      any
	HasOutput   bool
	Contains    any
	HasContains bool
	// Holds are conditions on the output, in which $input, $error, $requests and $events are defined, too.
	Holds []string
	// Error are members of the error.
	Error *ErrorExpectation
	// Tasks are all tasks that ran, in the order in which the run entered them, by name or pointer. Ran are some of them
	// in any order, NotRan tasks that must not have run. A task that its `if` skips has not run.
	Tasks       []string
	HasTasks    bool
	Ran, NotRan []string
	// Requests, Events and Children are all requests of calls, events that were emitted, and runs that were started, in
	// order.
	Requests    []RequestExpectation
	HasRequests bool
	Events      []any
	HasEvents   bool
	Children    []ChildExpectation
	HasChildren bool
	// Attempts are the numbers of the requests of calls, and of the attempts of tries, by name or pointer of the task.
	Attempts map[string]int
	// Duration is the length of the run, DurationAtMost its limit.
	Duration       *time.Duration
	DurationAtMost *time.Duration

	given bool
	at    location
	keys  map[string]dsl.Pos // of its members
}

// ErrorExpectation are the members that an error must have. Members that are empty are not compared.
type ErrorExpectation struct {
	Type, Title, Detail, Instance string
	Status                        int
}

// RequestExpectation is what a request must be. Members that are empty are not compared. Headers may have more.
type RequestExpectation struct {
	Task, Method, URL string
	Headers           map[string]string
	Body              any
	HasBody           bool
}

// ChildExpectation is the run that a task must start. Members that are empty are not compared.
type ChildExpectation struct {
	Task, Workflow, Version string
	Input                   any
	HasInput                bool
}

// location is the place of a part in its file; its zero value is that of a part that was built by a program.
type location struct {
	path string
	pos  dsl.Pos
}

// DefaultNow is the start of runs of cases without a time.
func DefaultNow() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }
