// Command protoimports prints the .proto sources that Signalbox's API imports from Google's API annotations,
// and those of the details of its errors.
//
// The sources come from the descriptors inside the pinned Go module google.golang.org/genproto/googleapis/api, so
// nothing is copied into the repository and nothing is fetched from a schema registry. Google's well-known types
// (google/protobuf) are left out: buf and protoc carry them.
//
// Usage: protoimports DIR writes the files below DIR.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/jhump/protoreflect/v2/protoprint"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/genproto/googleapis/api/httpbody"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: protoimports DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "protoimports:", err)
		os.Exit(1)
	}
}

// write prints the annotations and everything they import below dir.
func write(dir string) error {
	seen := map[string]bool{}
	files := closure(annotations.File_google_api_annotations_proto, seen, nil)
	files = closure(httpbody.File_google_api_httpbody_proto, seen, files)
	files = closure(errdetails.File_google_rpc_error_details_proto, seen, files)
	printer := protoprint.Printer{SortElements: true}
	if err := printer.PrintProtosToFileSystem(files, dir); err != nil {
		return fmt.Errorf("print the imported protos to %q: %w", dir, err)
	}
	return nil
}

// closure appends file and its imports to files, each once, without Google's well-known types.
func closure(file protoreflect.FileDescriptor, seen map[string]bool,
	files []protoreflect.FileDescriptor) []protoreflect.FileDescriptor {
	if seen[file.Path()] || strings.HasPrefix(file.Path(), "google/protobuf/") {
		return files
	}
	seen[file.Path()] = true
	imports := file.Imports()
	for i := range imports.Len() {
		files = closure(imports.Get(i).FileDescriptor, seen, files)
	}
	return append(files, file)
}
