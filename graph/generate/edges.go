package generate

import "runtime"

// planted is a set of vertices in blocks. A block is a community, or a class if each class has one
// community. A vertex is the image of a slot, block + blocks·rank, under a random permutation. The
// slot gives the block and rank of a vertex without a table. The permutation removes the relation
// between id and block.
type planted struct {
	blocks   uint64
	vertices uint64
	ids      shuffle
	ranks    *ranks
}

// edges is a graph.EdgeSource that samples the edges of a graph.
type edges struct {
	planted
	random stream
	inside uint64 // samples 0..inside-1 stay within a block
	draws  uint64
}

// block returns the community of a vertex.
func (p *planted) block(v uint64) uint64 { return p.ids.inverse(v) % p.blocks }

// draw returns the endpoints of sample i as slots.
func (e *edges) draw(i uint64) (a, b uint64) {
	w := e.random.at(3 * i)
	c := (w >> 32) * e.blocks >> 32
	d := c
	if i >= e.inside {
		if d = (w & 0xffffffff) * (e.blocks - 1) >> 32; d >= c {
			d++ // any block except c
		}
	}
	return e.slot(c, e.random.at(3*i+1)), e.slot(d, e.random.at(3*i+2))
}

// slot samples a vertex of block c. Block sizes differ by at most one: the last rank of the
// larger blocks does not exist in the smaller blocks.
func (p *planted) slot(c, random uint64) uint64 {
	s := uint64(p.ranks.at(random))*p.blocks + c
	if s >= p.vertices {
		s -= p.blocks
	}
	return s
}

// chunk is the number of samples that a worker takes at a time.
const chunk = 1 << 13

// Each implements graph.EdgeSource.
func (e *edges) Each(yield func(u, v uint32) error) error {
	return inChunks(e.draws, yield, func() sampler {
		var again []uint32
		return func(pairs []uint32, from, to uint64) []uint32 {
			for i := from; i < to; i++ {
				if a, b := e.draw(i); a != b { // a self loop gives no edge
					pairs = append(pairs, uint32(a), uint32(b))
				}
			}
			again = e.ids.all(pairs, again)
			return pairs
		}
	})
}

// sampler appends the edges of the samples from..to-1 to pairs.
type sampler = func(pairs []uint32, from, to uint64) []uint32

// inChunks yields the edges of all samples. Workers sample ahead, each with its own sampler: chunk k is
// assigned to worker k modulo the number of workers. Chunks are yielded in order.
func inChunks(draws uint64, yield func(u, v uint32) error, newSampler func() sampler) error {
	workers := uint64(runtime.GOMAXPROCS(0))
	stop := make(chan struct{})
	defer close(stop)
	full := make([]chan []uint32, workers)
	empty := make([]chan []uint32, workers)
	for w := range workers {
		full[w], empty[w] = make(chan []uint32, 2), make(chan []uint32, 2)
		empty[w] <- make([]uint32, 0, 2*chunk)
		empty[w] <- make([]uint32, 0, 2*chunk)
		go work(draws, w, workers, newSampler(), full[w], empty[w], stop)
	}
	for k := uint64(0); k*chunk < draws; k++ {
		pairs := <-full[k%workers]
		for i := 0; i < len(pairs); i += 2 {
			if err := yield(pairs[i], pairs[i+1]); err != nil {
				return err
			}
		}
		empty[k%workers] <- pairs
	}
	return nil
}

// work fills buffers with the chunks first, first+step, …
func work(draws, first, step uint64, sample sampler, full chan<- []uint32, empty <-chan []uint32, stop <-chan struct{}) {
	for k := first; k*chunk < draws; k += step {
		select {
		case pairs := <-empty:
			full <- sample(pairs[:0], k*chunk, min((k+1)*chunk, draws)) // never blocks: the channel has a place for each buffer
		case <-stop:
			return
		}
	}
}
