package local

import (
	"bytes"
	"math/rand/v2"

	"siafu/lambda"
)

// Faults are the injected failures of invocations.
type Faults = lambda.Faults

// letters are the letters of base64. A damaged payload has another one of them, so that it is still
// JSON.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// corrupt returns a payload with one letter changed, if it contains any.
func corrupt(payload []byte, r *rand.Rand) []byte {
	payload = bytes.Clone(payload)
	for from, k := r.IntN(max(len(payload), 1)), 0; k < len(payload); k++ {
		at := (from + k) % len(payload)
		if is := bytes.IndexByte([]byte(letters), payload[at]); is >= 0 {
			payload[at] = letters[(is+1+r.IntN(len(letters)-1))%len(letters)]
			break
		}
	}
	return payload
}
