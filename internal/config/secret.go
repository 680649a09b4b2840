package config

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
)

var (
	reference      = regexp.MustCompile(`\$\{([a-z]*):?([^}]*)\}`)
	keyValueDSN    = regexp.MustCompile(`(?:^|\s)(host|dbname|user|service)\s*=`)
	keyValueSecret = regexp.MustCompile(`(?i)\b(password|sslpassword)\s*=\s*('[^']+'|[^'\s]+)`)
)

// resolveSecrets replaces ${env:NAME} and ${file:/path} in a DSN. A value put into the middle of a URL is
// percent-escaped and one put into key=value text is quoted, so that any password works.
func resolveSecrets(dsn string, env Environment) (string, Problems) {
	var ps Problems
	whole := reference.FindString(dsn) == dsn
	resolved := reference.ReplaceAllStringFunc(dsn, func(match string) string {
		parts := reference.FindStringSubmatch(match)
		value, problem := readReference(parts[1], parts[2], env)
		if problem != "" {
			ps.add("", "%s: %s", match, problem)
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
	return resolved, ps
}

func readReference(kind, name string, env Environment) (value, problem string) {
	switch kind {
	case "env":
		value, ok := env.LookupEnv(name)
		if !ok || value == "" {
			return "", "the variable is not set; set it"
		}
		return value, ""
	case "file":
		content, err := os.ReadFile(name)
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

// hasPlainPassword reports whether the DSN, as it was written, holds a password that is no reference.
func hasPlainPassword(dsn string) bool {
	if !isPostgresDSN(dsn) {
		return false
	}
	bare := reference.ReplaceAllString(dsn, "")
	if !strings.Contains(bare, "://") {
		return keyValueSecret.MatchString(bare)
	}
	u, err := url.Parse(bare)
	if err != nil {
		return false
	}
	password, _ := u.User.Password()
	return password != "" || u.Query().Get("password") != "" || u.Query().Get("sslpassword") != ""
}

// isPostgresDSN tells a URL or key=value text from the path of a file.
func isPostgresDSN(dsn string) bool {
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		return true
	}
	return keyValueDSN.MatchString(dsn)
}
