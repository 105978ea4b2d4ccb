package hosttest

import (
	"hash/fnv"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// CommitSeed returns the value of an environment variable, or without it a number that changes with
// the commit of the checkout. It logs the setting that repeats the test.
func CommitSeed(t testing.TB, variable string) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		text = strconv.FormatUint(uint64(commitHash()), 10)
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s is not a number", variable, text)
	}
	t.Logf("%s=%d repeats this test", variable, seed)
	return seed
}

// commitHash is a hash of the commit of the checkout, which no commit has outside of one.
var commitHash = sync.OnceValue(func() uint32 {
	commit, _ := exec.Command("git", "rev-parse", "HEAD").Output()
	hash := fnv.New32()
	hash.Write(commit)
	return hash.Sum32()
})

// CasesVariable sets the seed of Turn.
const CasesVariable = "SIAFU_CASES_SEED"

// Turn returns a number below n that changes with the commit.
func Turn(t testing.TB, n int) int {
	t.Helper()
	return int(CommitSeed(t, CasesVariable) % uint64(n))
}

// Share returns every n-th of a test's cases, by name. Each commit has its share, so that n commits
// in a row test about all cases; the long variants test all at once.
func Share[M ~map[string]V, V any](t testing.TB, n int, cases M) M {
	t.Helper()
	share := M{}
	for _, name := range ShareOf(t, n, slices.Sorted(maps.Keys(cases))) {
		share[name] = cases[name]
	}
	return share
}

// ShareOf returns every n-th case of a list, as Share does.
func ShareOf[S ~[]V, V any](t testing.TB, n int, cases S) S {
	t.Helper()
	if Big() {
		return cases
	}
	var share S
	for k := Turn(t, n); k < len(cases); k += n {
		share = append(share, cases[k])
	}
	return share
}
