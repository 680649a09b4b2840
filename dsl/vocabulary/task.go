package vocabulary

import "slices"

// base returns the keys that every task may have.
func base() []Key {
	return []Key{
		{"if", typeExpression, false, "Condition: the task is skipped unless it holds."},
		{"input", typeInput, false, "Checks and maps the input of the task."},
		{"output", typeOutput, false, "Checks and maps the output of the task."},
		{"export", typeExport, false, "Sets `$context`, which all later tasks see."},
		{"timeout", typeTimeout, false, "Limit of the duration: `{after: …}`, or the name of one under `use.timeouts`."},
		{"then", typeFlow, false, "What follows: `continue` (default), `exit`, `end`, or the name of a task of the same list."},
		{"metadata", typeObject, false, "Further data. `signalbox.repeat: never` forbids that a call is sent again."},
	}
}

func kind(name string, keys ...Key) Type {
	return Type{Name: name, Form: Structure, Keys: slices.Concat(keys, base())}
}

func taskTypes() []Type {
	return []Type{
		{Name: typeTasks, Form: Named, Item: Task},
		{Name: Task, Form: Variant, Options: []string{"call task", "function task", "do task", "for task", "fork task",
			"raise task", "set task", "switch task", "try task", "wait task", "emit task", "listen task", "run task"}},
		kind("call task", Key{"call", "call kind", true, "Calls a service (`http`), or a function by its name."},
			Key{"with", "http arguments", true, "What is sent."}),
		kind("function task", Key{"call", "function name", true, "Calls a service (`http`), or a function by its name."},
			Key{"with", typeObject, false, "Input of the function. Default: the input of the task."}),
		kind("do task", Key{"do", typeTasks, true, "Runs tasks one after another."}),
		kind("for task", Key{"for", "for", true, "Runs tasks for each item of a list."},
			Key{"while", typeExpression, false, "Condition before each item: the loop ends when it does not hold."},
			Key{"do", typeTasks, true, "The tasks of each iteration."}),
		kind("fork task", Key{"fork", "fork", true, "Runs branches at the same time."}),
		kind("raise task", Key{"raise", "raise", true, "Fails with an error."}),
		kind("set task", Key{"set", "set", true, "Its output is this value: an object with expressions in it, or one expression."}),
		kind("switch task", Key{"switch", "cases", true, "Goes on with the first case whose condition holds."}),
		kind("try task", Key{"try", typeTasks, true, "Runs tasks, and handles their errors."},
			Key{"catch", "catch", true, "Which errors are handled, and how."}),
		kind("wait task", Key{"wait", typeDuration, true, "Waits for a duration, such as `{seconds: 5}` or `PT5S`."}),
		kind("emit task", Key{"emit", "emit", true, "Publishes an event."}),
		kind("listen task", Key{"listen", "listen", true, "Waits for events. Its output is the array of them."},
			Key{"foreach", "foreach", false, "Runs tasks for each event."}),
		kind("run task", Key{"run", "run", true, "Runs another workflow, or a program."}),
		{Name: typeFlow, Form: Text, Target: TargetTask},
		{Name: "for", Form: Structure, Keys: []Key{
			{"each", typeVariable, false, "Name of the variable of the item. Default: `item`."},
			{"at", typeVariable, false, "Name of the variable of the index. Default: `index`."},
			{"in", "collection", true, "The list: an expression, or an array of objects."},
		}},
		{Name: "collection", Form: Choice, Options: []string{typeExpression, "free objects"}},
		{Name: "free objects", Form: List, Item: typeObject},
		{Name: "fork", Form: Structure, Keys: []Key{
			{"branches", "branches", true, "The branches, each a task."},
			{"compete", typeBoolean, false, "The first branch to complete ends the others, and its output is that of the task."},
		}},
		{Name: "branches", Form: Named, Item: Task, Least: 1},
		{Name: "raise", Form: Structure, Keys: []Key{
			{"error", typeError, true, "The error, or the name of one under `use.errors`."},
		}},
		{Name: typeError, Form: Choice, Options: []string{"error reference", "error definition"}},
		{Name: "error reference", Form: Text, Target: TargetErrors},
		{Name: "error definition", Form: Structure, Keys: []Key{
			{"type", typeText, true, "URI that identifies the kind of the error."},
			{"status", typeInteger, true, "Status, as of HTTP."},
			{"title", typeText, false, "Short text of the error."},
			{"detail", typeText, false, "What has happened."},
			{"instance", typeText, false, "JSON pointer of the task. Default: that of the task that raises it."},
		}},
		{Name: "set", Form: Choice, Options: []string{typeWrapped, "set object"}},
		{Name: "set object", Form: Map, Item: typeAny, Least: 1},
		{Name: "cases", Form: Named, Item: "case", Least: 1},
		{Name: "case", Form: Structure, Keys: []Key{
			{"when", typeExpression, false, "Condition. One case may have none: the default."},
			{"then", typeFlow, true, "What follows: `continue`, `exit`, `end`, or the name of a task of the same list."},
		}},
		{Name: "catch", Form: Structure, Keys: []Key{
			{"errors", "caught errors", false, "Which errors are caught. Default: all."},
			{"as", typeVariable, false, "Name of the variable of the error. Default: `error`."},
			{"when", typeExpression, false, "Condition on the error, which is its input."},
			{"exceptWhen", typeExpression, false, "Condition on the error under which it is not caught."},
			{"retry", typeRetry, false, "How often and when the tasks run again: a policy, or the name of one under `use.retries`."},
			{"do", typeTasks, false, "Tasks that run when the error is caught and not retried."},
			{"then", typeFlow, false, "What follows the handled error."},
		}},
		{Name: "caught errors", Form: Structure, Keys: []Key{
			{"with", "error filter", false, "Members that the error must have. They are compared as they are."},
		}},
		{Name: "error filter", Form: Structure, Least: 1, Keys: []Key{
			{"type", typeText, false, "URI of the kind of the error."},
			{"status", typeInteger, false, "Status of the error."},
			{"instance", typeText, false, "JSON pointer of the task that raised the error."},
			{"title", typeText, false, "Title of the error."},
			{"detail", typeText, false, "Detail of the error."},
			{"details", typeText, false, "The name of `detail` in older releases of the language."},
		}},
		{Name: typeRetry, Form: Choice, Options: []string{"retry reference", "retry policy"}},
		{Name: "retry reference", Form: Text, Target: TargetRetries},
		{Name: "retry policy", Form: Structure, Keys: []Key{
			{"when", typeExpression, false, "Condition on the error under which it is retried."},
			{"exceptWhen", typeExpression, false, "Condition on the error under which it is not retried."},
			{"delay", typeDuration, false, "Time before a retry. Default: 100 ms, twice as long before each next one."},
			{"backoff", "backoff", false, "How the delay grows: `constant`, `linear` or `exponential`."},
			{"limit", "retry limit", false, "When retrying ends."},
			{"jitter", "jitter", false, "A random part that is added to the delay."},
		}},
		{Name: "backoff", Form: Structure, OneOf: []string{"constant", "linear", "exponential"}, Keys: []Key{
			{"constant", typeObject, false, "The delay stays the same: `{}`."},
			{"linear", typeObject, false, "The delay grows by itself with each retry: `{}`."},
			{"exponential", typeObject, false, "The delay doubles with each retry: `{}`."},
		}},
		{Name: "retry limit", Form: Structure, Keys: []Key{
			{"attempt", "attempt limit", false, "Limits of the attempts."},
			{"duration", typeDuration, false, "Time after which there is no further retry."},
		}},
		{Name: "attempt limit", Form: Structure, Keys: []Key{
			{"count", typeInteger, false, "Number of retries, without the first attempt."},
			{"duration", typeDuration, false, "Limit of the duration of one attempt."},
		}},
		{Name: "jitter", Form: Structure, Keys: []Key{
			{"from", typeDuration, true, "The shortest random part."},
			{"to", typeDuration, true, "The longest random part."},
		}},
		{Name: "run", Form: Structure, OneOf: []string{"workflow", "container", "script", "shell"}, Keys: []Key{
			{"workflow", "run workflow", false, "Another workflow, as a run of its own."},
			{"container", "run container", false, "A container, on a runner."},
			{"script", "run script", false, "A script, on a runner."},
			{"shell", "run shell", false, "A command of the shell, on a runner."},
			{"await", typeBoolean, false, "Whether the task waits for the end. Default: `true`."},
			{"return", "returned", false, "The output of the task: `stdout` (default), `stderr`, `code`, `all` or `none`."},
		}},
		{Name: "returned", Form: Text, Words: []string{"stdout", "stderr", "code", "all", "none"}},
		{Name: "run workflow", Form: Structure, Keys: []Key{
			{"namespace", typeName, true, "Namespace of the workflow."},
			{"name", typeName, true, "Name of the workflow."},
			{"version", "version or latest", true, "Version of the workflow, or `latest`."},
			{"input", typeObject, false, "Input of the run: an object with expressions in it. Default: the input of the task."},
		}},
		{Name: "version or latest", Form: Text, Pattern: `^latest$|` + semverPattern},
		{Name: "run script", Form: Structure, OneOf: []string{"code", "source"}, Keys: append([]Key{
			{"language", "script language", true, "Language of the script: `js` or `python`."},
			{"code", typeText, false, "The script."},
			{"source", typeResource, false, "A file or an address that has the script."},
		}, process()...)},
		{Name: "script language", Form: Text, Words: []string{"js", "javascript", "python", "python3"}},
		{Name: "run shell", Form: Structure, Keys: append([]Key{
			{"command", typeText, true, "The command."},
		}, process()...)},
		{Name: "run container", Form: Structure, Keys: append([]Key{
			{"image", typeText, true, "Image of the container."},
			{"name", typeText, false, "Name of the container."},
			{"command", typeText, false, "Command in the container. Default: that of the image."},
			{"ports", "ports", false, "Ports of the host, and the port of the container of each."},
			{"volumes", typeTextOrMap, false, "Paths of the host, and the path in the container of each."},
			{"lifetime", "lifetime", false, "When the container is removed."},
			{"pullPolicy", "pull policy", false, "When the image is pulled: `ifNotPresent` (default), `always` or `never`."},
		}, process()...)},
		{Name: "ports", Form: Choice, Options: []string{typeWrapped, "port map"}},
		{Name: "port map", Form: Map, Item: "count"},
		{Name: "lifetime", Form: Structure, Keys: []Key{
			{"cleanup", "cleanup", true, "`always` (default), `never`, or `eventually`, after a time."},
			{"after", typeDuration, false, "Time after the end, for `eventually`."},
		}},
		{Name: "cleanup", Form: Text, Words: []string{"always", "never", "eventually"}},
		{Name: "pull policy", Form: Text, Words: []string{"ifNotPresent", "always", "never"}},
		{Name: "arguments", Form: Choice, Options: []string{typeWrapped, typeTexts, typeObject}},
		{Name: "environment", Form: Choice, Options: []string{typeWrapped, typeObject}},
	}
}

// process returns the keys that every program has.
func process() []Key {
	return []Key{
		{"stdin", typeText, false, "Standard input: a text, or an expression."},
		{"arguments", "arguments", false, "Arguments: a list of texts, or an expression."},
		{"environment", "environment", false, "Variables of the environment: an object, or an expression."},
	}
}
