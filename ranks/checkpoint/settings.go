package checkpoint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"siafu/graph/fault"
)

const opResume = "resume"

// Settings is the part of a run's configuration that its numbers depend on, by
// the name of the flag. What may change between two halves of a run (ranks,
// servers, partitioner, codec, threads, epochs) is not in it.
type Settings map[string]string

// Agree compares the settings of the checkpoint at path with those of the run
// that is to go on from it. A fault of kind Config names each one that differs.
func (s Settings) Agree(path string, given Settings) error {
	all := maps.Clone(s)
	if all == nil {
		all = Settings{}
	}
	maps.Copy(all, given)
	var differ []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if old, now := s.get(key), given.get(key); old != now {
			differ = append(differ, fmt.Sprintf("%s is %s in the checkpoint and %s now", key, old, now))
		}
	}
	if differ == nil {
		return nil
	}
	return fault.New(fault.Config, opResume, path, "%s", strings.Join(differ, ", ")).
		Then("go on with what the checkpoint has, or begin a run of its own in another --out")
}

// get is a value as it is shown; none is a value of its own.
func (s Settings) get(key string) string {
	if v, ok := s[key]; ok {
		return fmt.Sprintf("%q", v)
	}
	return "not set"
}
