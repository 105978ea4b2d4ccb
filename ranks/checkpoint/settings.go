package checkpoint

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"siafu/graph/fault"
	"siafu/ranks/safetensors"
)

const opResume = "resume"

// Settings is the part of a run's configuration that its numbers depend on, by
// the name of the flag. What may change between two halves of a run (ranks,
// servers, partitioner, codec, threads, epochs) is not in it.
type Settings map[string]string

// optional is a setting that one of two may lack: a checkpoint of an older
// version, or a run whose first weights come from a file.
const optional = "initializer"

// Equal tells whether settings are those of a run that may go on with the given
// ones.
func (s Settings) Equal(given Settings) bool { return s.differences(given) == nil }

// Agree compares the dataset and the settings of the checkpoint with those of
// the run that is to go on from it. A fault of kind Config names each one that
// differs.
func (s *State) Agree(data, settings Settings) error {
	if s.Data == nil {
		return fault.New(fault.Config, opResume, s.Path, "it does not say which dataset it is of; an older version wrote it").
			Then("begin a run of its own from its weights: --init %s", filepath.Join(s.Path, modelFile))
	}
	if differ := s.Data.differences(data); differ != nil {
		return fault.New(fault.Config, opResume, s.Path, "the dataset is not the one that was trained on: %s", strings.Join(differ, ", ")).
			Then("go on with the dataset of the checkpoint, or begin a run of its own in another --out")
	}
	if differ := s.Settings.differences(settings); differ != nil {
		return fault.New(fault.Config, opResume, s.Path, "%s", strings.Join(differ, ", ")).
			Then("go on with what the checkpoint has, or begin a run of its own in another --out")
	}
	return nil
}

// differences are the keys with other values, as sentences.
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

// Fits compares the tensors of the checkpoint with those of the network that is
// to take them, name by name and shape by shape, and the slots with those of
// its optimiser. A fault of kind Data names what differs first.
func (s *State) Fits(want []safetensors.Tensor, slots []string) error {
	for i := range max(len(want), len(s.Weights)) {
		old, now := shapeOf(s.Weights, i), shapeOf(want, i)
		if old != now {
			return damaged(filepath.Join(s.Path, modelFile), "it has %s where the network has %s", old, now)
		}
	}
	var have []string
	for _, slot := range s.Slots {
		have = append(have, slot.Name)
	}
	if !slices.Equal(have, slots) {
		return damaged(filepath.Join(s.Path, optimizerFile), "it has the slots %q where the optimiser has %q", have, slots)
	}
	return nil
}

// shapeOf is a tensor of a list in words.
func shapeOf(list []safetensors.Tensor, i int) string {
	if i >= len(list) {
		return "no more tensors"
	}
	return fmt.Sprintf("%s %v", list[i].Name, list[i].Shape)
}

// get is a value as it is shown; none is a value of its own.
func (s Settings) get(key string) string {
	if v, ok := s[key]; ok {
		return fmt.Sprintf("%q", v)
	}
	return "not set"
}
