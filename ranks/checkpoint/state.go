package checkpoint

import (
	"encoding/json"
	"fmt"
	"slices"

	"siafu/internal/safetensors"
	"siafu/ranks/runfolder"
)

// State is the complete state of a run. A run that resumes from it continues as if it had
// never stopped. Random numbers depend only on seed, epoch, layer and vertex, so that seed
// and epoch are the state of the generators.
type State struct {
	Path string `json:"-"` // the folder it was read from; Save ignores it

	Version  string              `json:"siafu"`                      // of the program
	Epoch    int                 `json:"epoch"`                      // the last trained epoch; 0: none
	Seed     uint64              `json:"seed"`                       // of all random numbers
	Data     Settings            `json:"data"`                       // the dataset, which a resumed run must have; nil in format 1
	Settings Settings            `json:"settings"`                   // all others that a resumed run must have
	Cached   bool                `json:"cache_input"`                // whether ÂX is cached, which changes the last bits of results
	Ghosts   string              `json:"recompute_ghosts,omitempty"` // the resolved --recompute-ghosts; empty in older checkpoints
	Kernel   string              `json:"kernel,omitempty"`           // the variant of the kernels; empty in older checkpoints
	Codec    string              `json:"codec,omitempty"`            // the codec that --codec auto has settled on; empty: none
	Metadata map[string]string   `json:"metadata"`                   // of the weight files: the network; Save adds "epoch"
	Metrics  Metrics             `json:"metrics"`                    // the lines of metrics.jsonl up to Epoch
	Switched bool                `json:"switched"`                   // from bounded asynchrony to lockstep, until the end
	Seconds  float64             `json:"seconds"`                    // the run's duration so far
	Spent    runfolder.Functions `json:"spent,omitzero"`             // the totals of the run's invocations
	Last     *runfolder.Epoch    `json:"last"`                       // the newest line with accuracies, nil before the first
	Best     *Best               `json:"best"`                       // nil before the first evaluation
	Record   *Record             `json:"record,omitempty"`           // nil if Best is

	Weights []safetensors.Tensor `json:"-"` // after Epoch
	Slots   []Slot               `json:"-"` // the optimiser's; none for plain SGD
	History []byte               `json:"-"` // representations as packed by package history; nil in a run without
	Parts   [][]byte             `json:"-"` // the state of each part of the graph, if it has any; nil: none
}

// Record has the best value of each metric so far, possibly of different epochs, and the
// epoch from which patience counts.
type Record struct {
	ValAcc  float64  `json:"val_acc"`
	ValLoss *float64 `json:"val_loss,omitempty"` // nil in a run without validation
	Epoch   int      `json:"epoch"`
}

// Best is the best evaluation so far.
type Best struct {
	Line    runfolder.Epoch      `json:"line"`
	Weights []safetensors.Tensor `json:"-"` // at the start of Line.Epoch, with the names and shapes of State.Weights
}

// Slot is one array of the optimiser's state: one tensor per weight, with the weight's name
// and shape, in the same order. The name of a slot contains no dot.
type Slot struct {
	Name    string
	Tensors []safetensors.Tensor
}

// SlotNames returns torch.optim's names of the state of "sgd" (with momentum), "adam" and
// "adamw", in the order of kernels.Optimizer's slots.
func SlotNames(optimizer string) []string {
	if optimizer == "sgd" {
		return []string{"momentum_buffer"}
	}
	return []string{"exp_avg", "exp_avg_sq"}
}

// head is state.json.
type head struct {
	*State
	SlotNames []string `json:"slots"`
}

// EncodeHead returns state.json: all fields but the arrays, and the names of the slots. The error is that of a
// number which is not finite.
func (s *State) EncodeHead() ([]byte, error) {
	c := head{State: s, SlotNames: []string{}}
	for _, slot := range s.Slots {
		c.SlotNames = append(c.SlotNames, slot.Name)
	}
	text, err := json.MarshalIndent(c, "", "  ")
	return append(text, '\n'), err
}

// DecodeHead decodes the output of EncodeHead. The slots have only names.
func DecodeHead(text []byte) (State, error) {
	var s State
	c := head{State: &s}
	if err := json.Unmarshal(text, &c); err != nil {
		return State{}, err
	}
	if s.Epoch < 0 {
		return State{}, fmt.Errorf("epoch %d", s.Epoch)
	}
	for _, name := range c.SlotNames {
		s.Slots = append(s.Slots, Slot{Name: name})
	}
	return s, nil
}

// flatSlots returns the tensors of optimizer.safetensors.
func (s *State) flatSlots() []safetensors.Tensor {
	var list []safetensors.Tensor
	for _, slot := range s.Slots {
		for _, t := range slot.Tensors {
			t.Name += "." + slot.Name
			list = append(list, t)
		}
	}
	return list
}

// Allocate allocates the arrays of a state that has only its head. allocate returns those of the weights.
func (s *State) Allocate(allocate func() []safetensors.Tensor) {
	s.Weights = allocate()
	for k := range s.Slots {
		s.Slots[k].Tensors = allocate()
	}
	if s.Best != nil {
		s.Best.Weights = allocate()
	}
}

// Tensors returns the arrays of the weights, the slots and the best weights.
func (s *State) Tensors() []safetensors.Tensor {
	list := append(s.flatSlots(), s.Weights...)
	if s.Best != nil {
		list = append(list, s.Best.Weights...)
	}
	return list
}

// takeSlots sets the tensors of the slots from optimizer.safetensors.
func (s *State) takeSlots(list []safetensors.Tensor) error {
	n := len(s.Weights)
	if len(list) != n*len(s.Slots) {
		return fmt.Errorf("%d tensors, but %d weights have %d slots", len(list), n, len(s.Slots))
	}
	for k := range s.Slots {
		slot := &s.Slots[k]
		slot.Tensors = list[k*n : (k+1)*n : (k+1)*n]
		for i := range slot.Tensors {
			t := &slot.Tensors[i]
			if w := s.Weights[i]; t.Name != w.Name+"."+slot.Name {
				return fmt.Errorf("tensor %q, want %s of %q", t.Name, slot.Name, w.Name)
			}
			t.Name = s.Weights[i].Name
		}
		if !sameShapes(slot.Tensors, s.Weights) {
			return fmt.Errorf("slot %s differs from the weights in shape", slot.Name)
		}
	}
	return nil
}

// sameShapes reports whether two lists have the same names and shapes.
func sameShapes(a, b []safetensors.Tensor) bool {
	return slices.EqualFunc(a, b, func(x, y safetensors.Tensor) bool {
		return x.Name == y.Name && slices.Equal(x.Shape, y.Shape)
	})
}

// check panics if the tensors of a state do not match.
func (s *State) check() {
	if s.Epoch < 0 {
		panic("checkpoint: negative epoch")
	}
	if s.Best != nil && !sameShapes(s.Best.Weights, s.Weights) {
		panic("checkpoint: best weights of another shape")
	}
	for _, slot := range s.Slots {
		if !sameShapes(slot.Tensors, s.Weights) {
			panic("checkpoint: slot of another shape than the weights")
		}
	}
}
