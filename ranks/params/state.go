package params

import (
	"slices"

	"siafu/internal/mapped"
	"siafu/ranks/world"
)

// tagState is the tag of the optimiser's state in bounded asynchrony.
const tagState = 4

// SendState sends the optimiser's state, slot after slot, from a server to rank 0, which calls
// ReceiveState.
func SendState(w world.Comm, slots [][]float32) error {
	request, err := w.Isend(mapped.Bytes(slices.Concat(slots...)), 0, tagState)
	if err != nil {
		return err
	}
	return request.Wait()
}

// ReceiveState receives the optimiser's state from a server, for the given number of
// weights.
func ReceiveState(w world.Comm, server, weights int) ([][]float32, error) {
	m, err := w.Recv(server, tagState)
	if err != nil {
		return nil, err
	}
	return Slots(mapped.Cast[float32](m.Data), weights), nil
}
