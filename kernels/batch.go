package kernels

// Batch is a random mini-batch of vertices, different for each epoch and draw. Every vertex is
// in it with the same probability. All ranks get the same result.
type Batch struct {
	Seed        uint64
	Epoch, Draw int
	Share       float64 // of all vertices, on average; 1: all
}

// Has reports whether the vertex with a dataset id is in the batch:
//
//	Philox({id, 0, Epoch, Draw}, Seed)[0] < Share 2^32
func (b Batch) Has(id uint32) bool {
	words := Philox([4]uint32{id, 0, uint32(b.Epoch), uint32(b.Draw) | streamBatch}, philoxKey(b.Seed))
	return float64(words[0]) < b.Share*(1<<32)
}
