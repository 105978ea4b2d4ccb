package hosttest

import (
	"hash/fnv"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// CommitSeed returns the value of an environment variable, or without it a number that changes with
// the commit of the checkout. It logs the setting that repeats the test.
func CommitSeed(t testing.TB, variable string) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		commit, _ := exec.Command("git", "rev-parse", "HEAD").Output() // none outside of a checkout
		hash := fnv.New32()
		hash.Write(commit)
		text = strconv.FormatUint(uint64(hash.Sum32()), 10)
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s is not a number", variable, text)
	}
	t.Logf("%s=%d repeats this test", variable, seed)
	return seed
}
