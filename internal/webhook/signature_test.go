package webhook_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/webhook"
)

// The example of the Standard Webhooks specification.
func TestSignatureIsThatOfTheSpecification(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	body := []byte(`{"test": 2432232314}`)
	at := time.Unix(1614265330, 0)
	signature, err := webhook.Signature([]string{secret}, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body)
	require.NoError(t, err)
	require.Equal(t, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", signature)

	both, err := webhook.Signature([]string{webhook.NewSecret(), secret}, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body)
	require.NoError(t, err)
	require.Regexp(t, `^v1,\S+ v1,g0hM9SsE`, both)
	one, other := webhook.NewSecret(), webhook.NewSecret()
	require.NotEqual(t, one, other)
	_, err = webhook.Signature([]string{"whsec_?"}, "m", at, body)
	require.ErrorContains(t, err, "not base64")
}
