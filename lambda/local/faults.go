package local

import (
	"bytes"
	"math/rand/v2"
	"sync"

	"siafu/lambda"
)

// Faults are the injected failures of invocations.
type Faults = lambda.Faults

// faults draw what happens to invocations.
type faults struct {
	Faults
	mu sync.Mutex
	n  uint64 // invocations up to now
}

func newFaults(f Faults) *faults { return &faults{Faults: f} }

// next is what happens to the next invocation, and where the rest of its chance comes
// from.
func (f *faults) next() (lambda.Fault, *rand.Rand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	return f.Draw(f.n)
}

// letters are what a damaged answer has elsewhere: those of base64, so that it is
// still JSON.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// corrupt returns an answer in which one letter is another one, if it has any.
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
