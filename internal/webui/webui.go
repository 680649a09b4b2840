// Package webui serves the web UI: the pages that `make ui` builds from the folder ui into the folder dist, which is
// embedded here.
//
//	ui, err := webui.New(webui.Built())
//	handler := ui.Handler(notFound)
//
// The UI is one HTML document, which every path of a page returns, and files with a hash in their names, which browsers
// keep. The document has a nonce of its own in each response, so it is never cached. The build has compressed the
// files.
//
// Nothing here contains data, so no path needs a token: the document asks the API like every other client. When the UI
// was not built, the paths of pages return a page that says how to build it.
//
// Tests of the UI itself are in the folder ui.
package webui

import (
	"bytes"
	"crypto/rand"
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/notice"
)

// dist is empty, except for .keep, until `make ui` has built the UI.
//
//go:embed all:dist
var dist embed.FS

// Built returns the UI that was built into this program; without index.html if there is none.
func Built() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is a constant
	}
	return files
}

const (
	document = "index.html"
	// nonceMark is what the document has in place of the nonce.
	nonceMark = "__CSP_NONCE__"
	// policy has the nonce in place of %s. Styles need it where libraries insert them; scripts are files only.
	policy = "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-%s'; img-src 'self' data:; font-src " +
		"'self'; " +
		"connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
	assets = "/assets/"
	// licences is the text of the licences of others, which a page shows.
	licences = "/licences.txt"
)

// UI serves the pages and files of the UI.
type UI struct {
	document []byte // nil if the UI was not built
	files    map[string]*file
}

// New returns the UI with the given files: those of [Built], or of a test.
func New(files fs.FS) (*UI, error) {
	ui := &UI{files: map[string]*file{}}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir(), strings.HasPrefix(entry.Name(), "."):
			return nil
		case name == document:
			ui.document, err = fs.ReadFile(files, name)
			return err
		}
		f := newFile(files, name)
		ui.files["/"+f.name] = f
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the files of the web UI: %w", err)
	}
	ui.files[licences] = newCompressed(licences, notice.Compressed())
	return ui, nil
}

// Serves reports whether a path belongs to the UI: a page, a file, or any name in the folder of the files. No such path
// needs a token.
func (u *UI) Serves(name string) bool {
	return isPage(name) || u.files[name] != nil || strings.HasPrefix(name, assets)
}

// isPage reports whether a path is one of a page. The document selects the page.
func isPage(name string) bool {
	switch name {
	case "/", "/problems", "/workflows", "/dispatchers", "/workers", "/system", "/projects", "/access", "/sign-in":
		return true
	}
	for _, folder := range []string{"/p/", "/dispatchers/", "/projects/", "/system/"} {
		if strings.HasPrefix(name, folder) {
			return true
		}
	}
	return false
}

// Handler answers GET and HEAD for the paths that Serves accepts; missing answers the others, and files that do not
// exist.
func (u *UI) Handler(missing http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, page := u.files[r.URL.Path], isPage(r.URL.Path)
		switch {
		case f == nil && !page:
			missing.ServeHTTP(w, r)
		case f != nil:
			f.serve(w, r, strings.HasPrefix(r.URL.Path, assets))
		case u.document == nil:
			unbuilt(w, r)
		default:
			u.page(w, r, http.StatusOK)
		}
	})
}

// NotFound answers with the page for a path that does not exist, and the status 404. It contains no data.
func (u *UI) NotFound(w http.ResponseWriter, r *http.Request) {
	if u.document == nil {
		unbuilt(w, r)
		return
	}
	u.page(w, r, http.StatusNotFound)
}

// page sends the document with a new nonce. Forms and links to other sites must not reveal the path, but requests of
// this origin must name their origin, so that the server can distinguish them from those of other pages.
func (u *UI) page(w http.ResponseWriter, r *http.Request, status int) {
	nonce := rand.Text()
	h := w.Header()
	h.Set("Content-Security-Policy", fmt.Sprintf(policy, nonce))
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	send(w, r, status, bytes.ReplaceAll(u.document, []byte(nonceMark), []byte(nonce)))
}

// send writes an HTML page.
func send(w http.ResponseWriter, r *http.Request, status int, page []byte) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", fmt.Sprint(len(page)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(page) // fails only if the caller disconnected
	}
}

// unbuilt sends the page for a program without the UI. It needs no script and no style, so it keeps the strictest
// policy.
func unbuilt(w http.ResponseWriter, r *http.Request) {
	status := http.StatusOK
	if r.URL.Path != "/" {
		status = http.StatusNotFound
	}
	w.Header().Set("Content-Security-Policy",
		"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	w.Header().Set("Cache-Control", "no-store")
	send(w, r, status, []byte(unbuiltPage))
}

const unbuiltPage = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Signalbox</title></head>
<body>
<h1>Signalbox</h1>
<p>This program was built without the web UI. To build the UI, install Node.js 20.19 or newer, run <code>make ui</code> in the
repository, and build the program again; <code>make build</code> and <code>make dev</code> do both. The API is served at
<code>/v1/</code>.</p>
</body>
</html>
`

// contentType returns the type of a file by its name; empty for names for which net/http examines the content. The
// table of the system is not used: it differs between machines, and a wrong type disables a script.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".json", ".map":
		return "application/json"
	case ".svg":
		return "image/svg+xml"
	case ".txt":
		return "text/plain; charset=utf-8"
	case ".wasm":
		return "application/wasm"
	case ".webmanifest":
		return "application/manifest+json"
	case ".woff2":
		return "font/woff2"
	}
	return ""
}
