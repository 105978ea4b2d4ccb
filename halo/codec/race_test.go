//go:build race

package codec_test

// The race detector makes pools drop what they hold, now and then.
const poolsForget = true
