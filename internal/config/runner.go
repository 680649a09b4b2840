package config

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/config/schema"
)

// Isolations of shell commands and scripts in Python.
const (
	// IsolationAuto is that of containers where an image for the program is configured, otherwise that of bubblewrap.
	IsolationAuto       = "auto"
	IsolationContainer  = "container"
	IsolationBubblewrap = "bubblewrap"
	IsolationNone       = "none"
)

// Networks of programs.
const (
	NetworkNone = "none"
	// NetworkGuarded reaches what calls may reach, through a proxy of the runner.
	NetworkGuarded = "guarded"
	NetworkHost    = "host"
)

// Runner bounds the programs of workflows.
type Runner struct {
	Kinds         []string      `yaml:"kinds" default:"" doc:"Kinds of programs that every project may execute: script, shell, container. Projects may permit further ones for themselves (signalbox project set --runners). The worker role applies it."`
	Timeout       time.Duration `yaml:"timeout" default:"10m" doc:"Longest program of a task without its own timeout. The worker role applies it."`
	Programs      int           `yaml:"max_concurrent_programs" default:"8" doc:"Programs that one process with the runner role executes at once. Others wait."`
	ScriptTime    time.Duration `yaml:"max_script_time" default:"30s" doc:"Longest script in JavaScript, which occupies a processor of the runner all the time."`
	Memory        Size          `yaml:"max_script_memory" default:"64MiB" doc:"Memory of one script in JavaScript. 1MiB to 1GiB."`
	Output        Size          `yaml:"max_output_bytes" default:"256KiB" doc:"Largest standard output, and largest standard error, of a program. A program that prints more is ended. At most 512KiB: the output passes through Temporal in one message."`
	StopTimeout   time.Duration `yaml:"stop_timeout" default:"10s" doc:"How long a stopping runner lets programs run before it ends them."`
	Isolation     string        `yaml:"isolation" default:"auto" doc:"Isolation of shell commands and scripts in Python: auto, container, bubblewrap, or none. auto: a container if an image for them is configured, otherwise bubblewrap where it is installed; where neither is there, the runner refuses these programs. none executes them as the user of the runner, with access to its files, its environment and its network."`
	Network       string        `yaml:"network" default:"none" doc:"Network of shell commands and scripts in Python in bubblewrap: none; guarded: a proxy for HTTP, which refuses addresses that are not public or in calls.allow_private, and those of Temporal, Redis and the database; host: the network of the runner, without restriction. Projects may choose a narrower one (signalbox project set --program-limits)."`
	ProgramMemory Size          `yaml:"max_program_memory" default:"256MiB" doc:"Memory of a shell command, a script in Python or a container, with all of its processes. Without control groups, of each process."`
	Processes     int           `yaml:"max_program_processes" default:"64" doc:"Processes and threads of a shell command, a script in Python or a container."`
	Processors    int           `yaml:"max_program_processors" default:"1" doc:"Processors that a shell command, a script in Python or a container may use. Without control groups, the processor time of each process is at most this number times the timeout."`
	Disk          Size          `yaml:"max_program_disk" default:"64MiB" doc:"Files that a shell command, a script in Python or a container may write. They are in memory, and end with the program."`
	Containers    Containers    `yaml:"containers" doc:"Programs of the kind container, and the isolation container."`
}

// Containers configure the engine of containers.
type Containers struct {
	Socket      string   `yaml:"socket" default:"" doc:"Unix socket of the API of Docker or Podman, for example /var/run/docker.sock. Empty: containers are refused. Access to the socket of Docker is access to the whole host: rootless Docker and Podman avoid that."`
	Images      []string `yaml:"images" default:"" doc:"Images that programs of the kind container may use, as patterns in which * stands for any text without a slash and ** for any text, for example docker.io/library/alpine:* or registry.example.com/**. Empty: none."`
	MaxImage    Size     `yaml:"max_image_bytes" default:"2GiB" doc:"Largest image that is pulled and used."`
	ShellImage  string   `yaml:"shell_image" default:"" doc:"Image in which shell commands are executed. It needs /bin/sh."`
	PythonImage string   `yaml:"python_image" default:"" doc:"Image in which scripts in Python are executed. It needs python3."`
	Network     string   `yaml:"network" default:"none" doc:"Network of containers: none; guarded: a proxy for HTTP as in runner.network; or the name of a network of the engine, which must restrict what containers reach: calls.allow_private does not apply. Projects may choose a narrower one."`
	Sockets     string   `yaml:"socket_folder" default:"" doc:"Folder for the sockets through which containers with a guarded network call the runner. The engine must find it at the same path, which it does not with PrivateTmp of systemd. Empty: the folder for temporary files."`
	Volumes     []string `yaml:"volumes" default:"" doc:"Folders of the host that volumes of containers may be in. Empty: no volumes."`
	Ports       bool     `yaml:"ports" default:"false" doc:"Whether containers may publish ports, on the loopback addresses of the host. They need a network."`
	User        string   `yaml:"user" default:"65534:65534" doc:"User and group of the processes in containers, as numbers. Images cannot choose another one."`
}

// Validate checks the settings of the engine.
func (c Containers) Validate() Violations {
	var ps found
	if c.Socket != "" && !filepath.IsAbs(c.Socket) {
		ps.add("socket", "%q is not the absolute path of a socket", c.Socket)
	}
	for _, folder := range c.Volumes {
		if !filepath.IsAbs(folder) || filepath.Clean(folder) == "/" {
			ps.add("volumes", "%q is not the absolute path of a folder below /", folder)
		}
	}
	if slices.Contains(c.Images, "") {
		ps.add("images", "a pattern is empty")
	}
	positive(&ps, "max_image_bytes", c.MaxImage)
	switch {
	case c.Network == "":
		ps.add("network", "is empty; write %s, %s or the name of a network", NetworkNone, NetworkGuarded)
	case c.Network == NetworkHost || strings.HasPrefix(c.Network, "container:"):
		ps.add("network", "%q gives containers the network of others; name a network of the engine", c.Network)
	case (c.Network == NetworkNone || c.Network == NetworkGuarded) && c.Ports:
		ps.add("ports", "is true, and network is %s: containers without a network of the engine have no ports", c.Network)
	}
	if c.Sockets != "" && !filepath.IsAbs(c.Sockets) {
		ps.add("socket_folder", "%q is not the absolute path of a folder", c.Sockets)
	}
	switch {
	case !regexp.MustCompile(`^\d+:\d+$`).MatchString(c.User):
		ps.add("user", "%q is not a user and a group as numbers, for example 65534:65534", c.User)
	case strings.HasPrefix(c.User, "0:"):
		ps.add("user", "%q is root", c.User)
	}
	return Violations(ps)
}

const (
	// minScriptMemory and maxScriptMemory bound the memory of a script. A fresh sandbox needs half a megabyte.
	minScriptMemory, maxScriptMemory = 1 << 20, 1 << 30
	// maxProgramOutput bounds each output stream of a program: both pass through Temporal in one message of 2 MiB at most,
	// in which JSON may double their size.
	maxProgramOutput = 512 << 10
	// minProgramMemory is what an engine of containers needs at least.
	minProgramMemory = 8 << 20
)

// Validate checks the kinds and bounds.
func (r Runner) Validate() Violations {
	var ps found
	var kinds []string
	for _, k := range dsl.ProgramKinds() {
		kinds = append(kinds, string(k))
	}
	for i, kind := range r.Kinds {
		switch {
		case !slices.Contains(kinds, kind):
			ps.add("kinds", "%q is not a kind of program%s; the kinds are %s", kind, schema.DidYouMean(kind, kinds),
				strings.Join(kinds, ", "))
		case slices.Contains(r.Kinds[:i], kind):
			ps.add("kinds", "%q is named twice", kind)
		}
	}
	atLeast(&ps, "timeout", r.Timeout, time.Second)
	atLeastNumber(&ps, "max_concurrent_programs", r.Programs, 1)
	atLeast(&ps, "max_script_time", r.ScriptTime, time.Millisecond)
	if r.Memory < minScriptMemory || r.Memory > maxScriptMemory {
		ps.add("max_script_memory", "%v is not between %v and %v", r.Memory, Size(minScriptMemory), Size(maxScriptMemory))
	}
	if r.Output < 1 || r.Output > maxProgramOutput {
		ps.add("max_output_bytes", "%v is not between 1B and %v", r.Output, Size(maxProgramOutput))
	}
	atLeast(&ps, "stop_timeout", r.StopTimeout, 0)
	isolations := []string{IsolationAuto, IsolationContainer, IsolationBubblewrap, IsolationNone}
	if !slices.Contains(isolations, r.Isolation) {
		ps.add("isolation", "%q is not an isolation%s; write one of %s", r.Isolation,
			schema.DidYouMean(r.Isolation, isolations), strings.Join(isolations, ", "))
	}
	if r.Isolation == IsolationContainer && r.Containers.Socket == "" {
		ps.add("isolation", "is container, and containers.socket names no engine")
	}
	if networks := []string{NetworkNone, NetworkGuarded, NetworkHost}; !slices.Contains(networks, r.Network) {
		ps.add("network", "%q is not known%s; write one of %s", r.Network, schema.DidYouMean(r.Network, networks),
			strings.Join(networks, ", "))
	}
	positive(&ps, "max_program_disk", r.Disk)
	if r.ProgramMemory < minProgramMemory {
		ps.add("max_program_memory", "%v is too small; give at least %v", r.ProgramMemory, Size(minProgramMemory))
	}
	atLeastNumber(&ps, "max_program_processes", r.Processes, 1)
	atLeastNumber(&ps, "max_program_processors", r.Processors, 1)
	return append(Violations(ps), r.Containers.Validate().under("containers")...)
}
