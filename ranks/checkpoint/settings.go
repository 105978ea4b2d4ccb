package checkpoint

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"siafu/internal/fault"
	"siafu/internal/safetensors"
)

const opResume = "resume"

// Settings are the options that the results of a run depend on, by the name of the flag.
// Options that may change when a run resumes (ranks, servers, partitioner, codec, threads,
// epochs) are not included.
type Settings map[string]string

// optional is a setting that is compared only if both have it. A checkpoint of an older
// version, or a run whose first weights come from a file, has none.
const optional = "initializer"

// Equal reports whether a run with settings s may resume with the given ones.
func (s Settings) Equal(given Settings) bool { return s.differences(given) == nil }

// Agree compares the dataset and the settings of the checkpoint with those of the run that
// resumes from it. A fault of kind Config names each difference.
func (s *State) Agree(data, settings Settings) error {
	if s.Data == nil {
		return fault.New(fault.Config, opResume, s.Path, "it does not name its dataset; an older version wrote it").
			Then("start a new run from its weights: --init %s", filepath.Join(s.Path, modelFile))
	}
	if differ := s.Data.differences(data); differ != nil {
		return fault.New(fault.Config, opResume, s.Path, "the dataset differs from that of the training: %s", strings.Join(differ, ", ")).
			Then("resume with the checkpoint's dataset, or start a new run in another --out")
	}
	if differ := s.Settings.differences(settings); differ != nil {
		return fault.New(fault.Config, opResume, s.Path, "%s", strings.Join(differ, ", ")).
			Then("resume with the checkpoint's settings, or start a new run in another --out")
	}
	return nil
}

// differences returns a sentence for each key whose values differ.
func (s Settings) differences(given Settings) (differ []string) {
	all := Settings{}
	maps.Copy(all, s)
	maps.Copy(all, given)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		_, saved := s[key]
		if _, also := given[key]; key == optional && !(saved && also) {
			continue
		}
		if old, now := s.get(key), given.get(key); old != now {
			differ = append(differ, fmt.Sprintf("%s is %s in the checkpoint and %s now", key, old, now))
		}
	}
	return differ
}

// Fits compares the tensors of the checkpoint with those of the network, name by name and
// shape by shape, and the slots with those of its optimiser. A fault of kind Data names the
// first difference.
func (s *State) Fits(want []safetensors.Tensor, slots []string) error {
	for i := range max(len(want), len(s.Weights)) {
		old, now := shapeOf(s.Weights, i), shapeOf(want, i)
		if old != now {
			return damaged(filepath.Join(s.Path, modelFile), "it has %s, but the network has %s", old, now)
		}
	}
	var have []string
	for _, slot := range s.Slots {
		have = append(have, slot.Name)
	}
	if !slices.Equal(have, slots) {
		return damaged(filepath.Join(s.Path, optimizerFile), "it has the optimiser slots %q, but the optimiser needs %q", have, slots)
	}
	return nil
}

// shapeOf returns the name and shape of a tensor for messages.
func shapeOf(list []safetensors.Tensor, i int) string {
	if i >= len(list) {
		return "no more tensors"
	}
	return fmt.Sprintf("%s %v", list[i].Name, list[i].Shape)
}

// get returns the value of a key for messages.
func (s Settings) get(key string) string {
	if v, ok := s[key]; ok {
		return fmt.Sprintf("%q", v)
	}
	return "not set"
}
