package authn

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/signalbox-dev/signalbox/dsl/httpmessage"
)

const (
	secretJWT = "client_secret_jwt"
	keyJWT    = "private_key_jwt"
	// assertionType is the type of a client's assertion that is a JWT (RFC 7523, 2.2).
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	// assertionLifetime allows for clocks that differ. Each request for a token has an assertion of its own.
	assertionLifetime = 2 * time.Minute
)

// assertion returns the JWT by which a client authenticates to a token endpoint (RFC 7523; OpenID Connect Core 1.0, 9):
// the one that the policy gives, or one that is signed with the client's secret, which is the key itself for
// client_secret_jwt, and a private key for private_key_jwt.
func assertion(c httpmessage.Client, endpoint string, now time.Time) (string, error) {
	if c.Assertion != "" {
		return c.Assertion, nil
	}
	switch {
	case c.ID == "":
		return "", fmt.Errorf("the client authentication %s requires the client's id", c.Authentication)
	case c.Secret == "":
		return "", fmt.Errorf("the client authentication %s requires the client's secret or its assertion", c.Authentication)
	}
	key := jose.SigningKey{Algorithm: jose.HS256, Key: []byte(c.Secret)}
	if c.Authentication == keyJWT {
		var err error
		if key, err = signingKey(c.Secret); err != nil {
			return "", fmt.Errorf("the client authentication %s: %w", keyJWT, err)
		}
	}
	signer, err := jose.NewSigner(key, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", fmt.Errorf("the client's secret cannot sign an assertion with %s", key.Algorithm)
	}
	signed, err := jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: c.ID, Subject: c.ID, Audience: jwt.Audience{endpoint}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(assertionLifetime)),
	}).Serialize()
	if err != nil {
		return "", fmt.Errorf("the client's secret cannot sign an assertion with %s", key.Algorithm)
	}
	return signed, nil
}

// errKey reports a private key that cannot be read. The decoders' errors could quote parts of it.
var errKey = errors.New("the client's secret must be a private key in PEM or as a JWK, without a passphrase")

// signingKey reads a private key: a JWK, or the first block of a PEM text.
func signingKey(secret string) (jose.SigningKey, error) {
	if strings.HasPrefix(strings.TrimSpace(secret), "{") {
		var key jose.JSONWebKey
		if json.Unmarshal([]byte(secret), &key) != nil || key.IsPublic() || !key.Valid() {
			return jose.SigningKey{}, errKey
		}
		algorithm := jose.SignatureAlgorithm(key.Algorithm)
		if algorithm == "" {
			var err error
			if algorithm, err = algorithmOf(key.Key); err != nil {
				return jose.SigningKey{}, err
			}
		}
		return jose.SigningKey{Algorithm: algorithm, Key: key}, nil
	}
	block, _ := pem.Decode([]byte(secret))
	if block == nil {
		return jose.SigningKey{}, errKey
	}
	key, err := privateKey(block)
	if err != nil {
		return jose.SigningKey{}, errKey
	}
	algorithm, err := algorithmOf(key)
	return jose.SigningKey{Algorithm: algorithm, Key: key}, err
}

func privateKey(block *pem.Block) (crypto.PrivateKey, error) {
	switch block.Type {
	case "RSA PRIVATE KEY":
		return x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		return x509.ParseECPrivateKey(block.Bytes)
	}
	return x509.ParsePKCS8PrivateKey(block.Bytes)
}

// algorithmOf returns the signature algorithm of a private key without one of its own.
func algorithmOf(key any) (jose.SignatureAlgorithm, error) {
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return jose.RS256, nil
	case ed25519.PrivateKey:
		return jose.EdDSA, nil
	case *ecdsa.PrivateKey:
		switch key.Curve {
		case elliptic.P256():
			return jose.ES256, nil
		case elliptic.P384():
			return jose.ES384, nil
		case elliptic.P521():
			return jose.ES512, nil
		}
	}
	return "", errors.New("the client's private key must be of RSA, of ECDSA with P-256, P-384 or P-521, or of Ed25519")
}
