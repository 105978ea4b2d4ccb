package generate

import "runtime"

// edges is a graph.EdgeSource that samples the edges of a graph. A block is a community, or a
// class if each class has one community. A vertex is the image of a slot, block + blocks·rank,
// under a random permutation. The slot gives the block and rank of a vertex without a table.
// The permutation removes the relation between id and block.
type edges struct {
	blocks   uint64
	vertices uint64
	ids      shuffle
	ranks    *ranks
	random   stream
	inside   uint64 // samples 0..inside-1 stay within a block
	draws    uint64
}

// block returns the community of a vertex.
func (e *edges) block(v uint64) uint64 { return e.ids.inverse(v) % e.blocks }

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
func (e *edges) slot(c, random uint64) uint64 {
	s := uint64(e.ranks.at(random))*e.blocks + c
	if s >= e.vertices {
		s -= e.blocks
	}
	return s
}

// chunk is the number of samples that a worker takes at a time.
const chunk = 1 << 13

// Each implements graph.EdgeSource. Workers sample ahead: chunk k is assigned to worker k
// modulo the number of workers. Chunks are yielded in order.
func (e *edges) Each(yield func(u, v uint32) error) error {
	workers := uint64(runtime.GOMAXPROCS(0))
	stop := make(chan struct{})
	defer close(stop)
	full := make([]chan []uint32, workers)
	empty := make([]chan []uint32, workers)
	for w := range workers {
		full[w], empty[w] = make(chan []uint32, 2), make(chan []uint32, 2)
		empty[w] <- make([]uint32, 0, 2*chunk)
		empty[w] <- make([]uint32, 0, 2*chunk)
		go e.work(w, workers, full[w], empty[w], stop)
	}
	for k := uint64(0); k*chunk < e.draws; k++ {
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
func (e *edges) work(first, step uint64, full chan<- []uint32, empty <-chan []uint32, stop <-chan struct{}) {
	var again []uint32
	for k := first; k*chunk < e.draws; k += step {
		var pairs []uint32
		select {
		case pairs = <-empty:
		case <-stop:
			return
		}
		pairs = pairs[:0]
		for i := k * chunk; i < min((k+1)*chunk, e.draws); i++ {
			if a, b := e.draw(i); a != b { // a self loop gives no edge
				pairs = append(pairs, uint32(a), uint32(b))
			}
		}
		again = e.ids.all(pairs, again)
		full <- pairs // never blocks: the channel has a place for each buffer
	}
}
