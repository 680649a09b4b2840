package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/secretfile"
)

var (
	reference      = regexp.MustCompile(`\$\{([a-z]*):?([^}]*)\}`)
	keyValueDSN    = regexp.MustCompile(`(?:^|\s)(host|dbname|user|service)\s*=`)
	keyValueSecret = regexp.MustCompile(`(?i)\b(password|sslpassword)\s*=\s*('[^']+'|[^'\s]+)`)
)

// ResolveDSN replaces ${env:NAME} and ${file:/path} in a DSN. A value put into the middle of a URL is
// percent-escaped and one put into key=value text is quoted, so that any password works.
//
// Each violation names a reference that cannot be resolved and the cause, without its value. The rest of the DSN is not
// validated.
func ResolveDSN(dsn string, lookup func(name string) (string, bool)) (resolved string, violations []string) {
	whole := reference.FindString(dsn) == dsn
	resolved = reference.ReplaceAllStringFunc(dsn, func(match string) string {
		parts := reference.FindStringSubmatch(match)
		value, violation := readReference(parts[1], parts[2], lookup)
		if violation != "" {
			violations = append(violations, match+": "+violation)
			return ""
		}
		switch {
		case whole:
			return value
		case strings.Contains(dsn, "://"):
			return escapeURL(value)
		default:
			return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
		}
	})
	return resolved, violations
}

func readReference(kind, name string, lookup func(name string) (string, bool)) (value, violation string) {
	switch kind {
	case "env":
		value, ok := lookup(name)
		if !ok || value == "" {
			return "", "the variable is not set; set it"
		}
		return value, ""
	case "file":
		content, err := secretfile.Read(name)
		if err != nil {
			return "", fmt.Sprintf("the file cannot be read: %v; check its path and permissions", err)
		}
		value := strings.TrimRight(string(content), "\r\n")
		if value == "" {
			return "", "the file is empty"
		}
		return value, ""
	default:
		return "", "is not a reference; write ${env:NAME} or ${file:/path}"
	}
}

// escapeURL escapes everything but unreserved characters; url.PathEscape would keep '@' and ':'.
func escapeURL(value string) string {
	return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
}

// HasPlainPassword reports whether the unresolved DSN contains a password in plain text.
func HasPlainPassword(dsn string) bool {
	bare := reference.ReplaceAllString(dsn, "")
	if !strings.Contains(bare, "://") {
		return IsPostgresDSN(dsn) && keyValueSecret.MatchString(bare)
	}
	u, err := url.Parse(bare)
	if err != nil {
		return false
	}
	password, _ := u.User.Password()
	return password != "" || u.Query().Get("password") != "" || u.Query().Get("sslpassword") != ""
}

// IsPostgresDSN reports whether the text is a URL or key=value text, and not the path of a file.
func IsPostgresDSN(dsn string) bool {
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		return true
	}
	return keyValueDSN.MatchString(dsn)
}
