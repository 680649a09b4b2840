package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// secretPrefix begins a secret of Standard Webhooks.
const secretPrefix = "whsec_"

// NewSecret returns a random secret: "whsec_" and 32 bytes in base64.
func NewSecret() string {
	const size = 32
	key := make([]byte, size)
	_, _ = rand.Read(key) // it never fails: the program crashes where no randomness is available
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// Signature returns the header webhook-signature of a request, with a signature for each secret (Standard Webhooks,
// v1).
func Signature(secrets []string, id string, at time.Time, body []byte) (string, error) {
	var signatures []string
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
		if err != nil {
			return "", fmt.Errorf("the secret of the webhook is not base64: %w", err)
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(signatures, " "), nil
}
