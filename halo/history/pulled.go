package history

import (
	"siafu/halo"
	"siafu/kernels"
)

// pulled is the common part of collectives that pull rows from a store. They send no gradients, and
// no pull outlives its pass.
type pulled struct{ store *Store }

func (pulled) Reserve(halo.Shape) {}

// SendBuffer implements halo.Source: no rows are computed only for other ranks.
func (pulled) SendBuffer(halo.Slot) kernels.Mat { return kernels.Mat{} }

func (p pulled) Arrived(halo.Slot) (bool, error) { return p.store.Pulled() }

func (p pulled) Await(halo.Slot) error { return p.store.Await() }

func (pulled) Progress() error { return nil }

// Add implements halo.Source: histories have no gradient.
func (pulled) Add(kernels.Ops, halo.Slot, kernels.Mat, int, int) error { return nil }

func (pulled) Settle() error { return nil }

func (p pulled) TakeStats() halo.Stats { return p.store.TakeStats() }
