package conformance_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/test/agreement"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// services returns the names that lead to the stand-ins: those of the scenarios, and of the official examples.
func services() []string {
	return []string{"petstore.swagger.io", "httpbin.org", "swapi.dev", "keycloak", "myorg.io", "example.com",
		"external-service.example.com", "fake-chat-api.com", "fake-hospital.com", "fake.com", "hospital.example.com",
		"raw.githubusercontent.com", "superbet-casinos.com", "virtual-wf-powered-race.com"}
}

// startServices serves the stand-ins at the ports of http and https, and returns the file of the authority that has
// signed their certificate, and the record of what they receive.
func startServices(t platform.T) (string, *agreement.Services) {
	t.Helper()
	certificate, authority := issue(t)
	handler := http.NewServeMux()
	handler.HandleFunc("petstore.swagger.io/v2/", petstore)
	handler.HandleFunc("httpbin.org/", httpbin)
	examples := &official{seen: map[string]int{}}
	handler.HandleFunc("petstore.swagger.io/v2/pet/503", examples.serve)
	handler.HandleFunc("/", examples.serve)
	services := agreement.Record(handler, belongsToNoCall)
	for _, port := range []string{"80", "443"} {
		server := &http.Server{Handler: services, ReadHeaderTimeout: platform.Patience, TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}}
		var config net.ListenConfig
		listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatalf("listen: %v", err)
		}
		t.Cleanup(func() { _ = server.Close() }) // the tests are over
		go func() {
			if port == "443" {
				_ = server.ServeTLS(listener, "", "") // it ends with the server
				return
			}
			_ = server.Serve(listener) // likewise
		}()
	}
	return authority, services
}

// belongsToNoCall reports whether a request is one of a token, or reads a text that a document refers to.
func belongsToNoCall(r *http.Request) bool {
	switch path := r.URL.Path; path {
	case "/v2/swagger.json", "/openapi.yaml", "/ordersservices.json", "/.well-known/openid-configuration", "/oauth2/token",
		"/auth":
		return true
	default:
		return r.Host == "keycloak" || r.Host == "raw.githubusercontent.com"
	}
}

// issue returns a certificate for the services, and the file of its authority.
func issue(t platform.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("make a key: %v", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "stand-ins"}, DNSNames: services(),
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatalf("make a certificate: %v", err)
	}
	file := filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatalf("write the certificate: %v", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// petstore has two pets.
func petstore(w http.ResponseWriter, r *http.Request) {
	pet := func(id int) map[string]any { return map[string]any{"id": id, "name": "Milou", "status": "available"} }
	path := strings.TrimPrefix(r.URL.Path, "/v2/")
	switch {
	case path == "swagger.json":
		answer(w, http.StatusOK, petstoreDescription())
	case path == "pet/1", path == "pet/2":
		id, _ := strconv.Atoi(path[len("pet/"):])
		answer(w, http.StatusOK, pet(id))
	case path == "pet/findByStatus" && r.URL.Query().Get("status") == "available":
		answer(w, http.StatusOK, []any{pet(1), pet(2)})
	default:
		answer(w, http.StatusNotFound, map[string]any{"message": "not found"})
	}
}

// petstoreDescription describes the operations that scenarios call.
func petstoreDescription() map[string]any {
	operation := func(id, in, name, kind string) map[string]any {
		parameter := map[string]any{"in": in, "name": name, "type": kind, "required": true, "collectionFormat": "multi",
			"items": map[string]any{"type": "string", "enum": []string{"available", "pending", "sold"}}}
		return map[string]any{"get": map[string]any{"operationId": id, "produces": []string{"application/json"},
			"parameters": []any{parameter}, "responses": map[string]any{"200": map[string]any{"description": "found"}}}}
	}
	return map[string]any{
		"swagger": "2.0", "info": map[string]any{"title": "Pets", "version": "1.0.0"}, "host": "petstore.swagger.io",
		"basePath": "/v2", "schemes": []string{"https"},
		"paths": map[string]any{
			"/pet/findByStatus": operation("findPetsByStatus", "query", "status", "array"),
			"/pet/{petId}":      operation("getPetById", "path", "petId", "integer"),
		},
	}
}

// httpbinDescription describes services of httpbin, at a server that is relative to the description.
const httpbinDescription = `
openapi: 3.1.0
info: {title: Services, version: 1.0.0}
servers: [{url: '/{service}', variables: {service: {default: anything, enum: [anything, none]}}}]
components:
  securitySchemes: {token: {type: http, scheme: bearer}}
  schemas:
    Order:
      type: object
      required: [sku]
      properties: {sku: {type: string, minLength: 2}, parts: {type: array, items: {$ref: '#/components/schemas/Order'}}}
paths:
  /orders/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: integer, minimum: 1}}]
    get:
      operationId: getOrder
      parameters:
        - {name: tags, in: query, schema: {type: array, items: {type: string}}}
        - {name: states, in: query, explode: false, schema: {type: array, items: {type: string}}}
        - {name: filter, in: query, style: deepObject, schema: {type: object}}
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: session, in: cookie, schema: {type: string}}
    put:
      operationId: putOrder
      security: [{token: []}]
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Order'}}}}
  /moved: {servers: [{url: 'https://httpbin.org/redirect'}], get: {operationId: move}}
`

// httpbin has services that answer with what they have received.
func httpbin(w http.ResponseWriter, r *http.Request) {
	first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch first {
	case "anything":
		answer(w, http.StatusOK, received(r))
	case "status":
		status, err := strconv.Atoi(rest)
		if err != nil {
			status = http.StatusBadRequest
		}
		answer(w, status, map[string]any{"status": status})
	case "redirect":
		http.Redirect(w, r, "/anything", http.StatusFound)
	case "basic-auth":
		name, password, given := r.BasicAuth()
		if !given || name+"/"+password != rest {
			answer(w, http.StatusUnauthorized, nil)
			return
		}
		answer(w, http.StatusOK, map[string]any{"authenticated": true, "user": name})
	case "oauth2", "auth":
		_ = r.ParseForm() // a form that cannot be parsed has no values
		answer(w, http.StatusOK, map[string]any{"access_token": "granted-" + r.PostForm.Get("grant_type")})
	case ".well-known":
		answer(w, http.StatusOK, map[string]any{"issuer": "https://httpbin.org", "token_endpoint": "https://httpbin.org/auth"})
	case "digest-auth":
		if !strings.HasPrefix(r.Header.Get("Authorization"), `Digest username="`+rest+`"`) {
			w.Header().Set("WWW-Authenticate", `Digest realm="here", nonce="once", qop="auth"`)
			answer(w, http.StatusUnauthorized, nil)
			return
		}
		answer(w, http.StatusOK, map[string]any{"authenticated": true, "user": rest})
	case "openapi.yaml":
		text(w, "application/yaml", httpbinDescription)
	case "schema.json":
		text(w, "application/json", `{"type": "object", "properties": {"n": {"type": "number"}}}`)
	case "script.js":
		text(w, "text/javascript", `console.log("a script")`)
	case "catalog":
		if rest != "functions/double/1.0.0/function.yaml" {
			answer(w, http.StatusNotFound, nil)
			return
		}
		text(w, "application/yaml", "set: {doubled: '${ .n * 2 }'}\n")
	case "text":
		text(w, "text/plain", "a text")
	default:
		answer(w, http.StatusNotFound, nil)
	}
}

// text answers with a text of a type.
func text(w http.ResponseWriter, kind, content string) {
	w.Header().Set("Content-Type", kind)
	_, _ = io.WriteString(w, content) // the caller may have disconnected
}

// received describes a request as its answer.
func received(r *http.Request) map[string]any {
	body, _ := io.ReadAll(r.Body) // a body that is cut off is shown as far as it came
	args := map[string]any{}
	for name, values := range r.URL.Query() {
		args[name] = strings.Join(values, ",")
	}
	headers := map[string]any{}
	for name := range r.Header {
		headers[name] = r.Header.Get(name)
	}
	out := map[string]any{"method": r.Method, "path": r.URL.Path, "args": args, "headers": headers, "data": string(body)}
	var decoded any
	if json.Unmarshal(body, &decoded) == nil {
		out["json"] = decoded
	}
	return out
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(fmt.Sprintf("encode the answer: %v", err))
	}
}
