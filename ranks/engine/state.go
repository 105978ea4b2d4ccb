package engine

import (
	"siafu/internal/safetensors"
	"siafu/kernels/model"
	"siafu/ranks/checkpoint"
	"siafu/ranks/stopping"
)

// Tensors returns the named matrices of a flat vector of weights, or only their names and
// shapes if it is nil.
func Tensors(s model.Spec, flat []float32) (list []safetensors.Tensor) {
	for _, p := range s.Params() {
		shape := []int{p.Rows, p.Cols}
		if p.Bias {
			shape = []int{p.Cols}
		}
		t := safetensors.Tensor{Name: p.Name, Shape: shape}
		if flat != nil {
			t.Data = p.Of(flat)
		}
		list = append(list, t)
	}
	return list
}

// state returns the state of the run after an epoch, as far as training determines it. Its arrays are the
// given ones.
func (e *Engine) state(epoch int, weights []float32, slots [][]float32, h *stopping.History) checkpoint.State {
	s := checkpoint.State{Epoch: epoch, Weights: Tensors(e.Network, weights)}
	for k, name := range checkpoint.SlotNames(e.Config.Optimizer)[:len(slots)] {
		s.Slots = append(s.Slots, checkpoint.Slot{Name: name, Tensors: Tensors(e.Network, slots[k])})
	}
	if h.Best != nil {
		s.Best, s.Record = &checkpoint.Best{Line: h.BestLine, Weights: Tensors(e.Network, h.Best)}, h.Record.Saved()
		if last := h.Last; last.TrainAcc != nil {
			s.Last = &last
		}
	}
	return s
}

// state returns the state of the run before the current epoch, on rank 0; other ranks have only its number.
func (t *trainer) state(epoch int) (checkpoint.State, error) {
	if t.comm.Rank() > 0 {
		return checkpoint.State{Epoch: epoch}, nil
	}
	slots, err := t.source.State()
	if err != nil {
		return checkpoint.State{}, err
	}
	s := t.engine.state(epoch, t.flat, slots, t.history)
	s.Switched, s.Codec = t.cfg.Mode == "async" || t.phases.Over(), t.engine.codec.settled
	return s, nil
}
