package run

import "strings"

// EnclosingTries returns the paths of the tries that the entry with this path is inside of, the innermost first. It is
// inside of one whether its task belongs to the first attempt, to a later one or to the catch.
//
// A path consists of containers, each with the index and the name of the task that is entered: do/0/a, try/0/a,
// retry/2/try/0/a, catch/do/0/a, for/3/do/0/a, foreach/3/do/0/a, fork/branches/0/a. A task may have the name of a
// container.
func EnclosingTries(path string) []string {
	const longest = 5
	var tries []string
	at := 0 // the end of the parsed prefix
	for rest := path; rest != ""; rest = path[at:] {
		segments := strings.SplitN(strings.TrimPrefix(rest, "/"), "/", longest+1)
		length := 3
		switch segments[0] {
		case "for", "foreach", "retry":
			length = longest
		case "fork", "catch":
			length = 4
		}
		if len(segments) < length {
			break
		}
		switch segments[0] {
		case "try", "retry", "catch":
			tries = append([]string{path[:at]}, tries...)
		}
		for _, s := range segments[:length] {
			at += 1 + len(s)
		}
	}
	return tries
}

// Caught returns whether the error of a failed step with this path was caught: whether it is inside of a try that has
// completed. statuses has the statuses of tries by path. The result is nil if none of the known tries has completed and
// one of them is unknown.
func Caught(path string, statuses map[string]string) *bool {
	known := true
	for _, try := range EnclosingTries(path) {
		switch status, listed := statuses[try]; {
		case status == string(Completed):
			return new(true)
		case !listed:
			known = false
		}
	}
	if !known {
		return nil
	}
	return new(false)
}
