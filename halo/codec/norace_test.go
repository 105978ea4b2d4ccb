//go:build !race

package codec_test

const poolsForget = false
