package cuda

import (
	"siafu/cuda/device"
	"siafu/kernels"
)

// Shapes of launches. A block has 256 threads, in a row or as 32 x 8.
const (
	blockThreads = 256
	warp         = 32
	blockRows    = blockThreads / warp
)

// launch queues a grid of a kernel; with no blocks there is nothing to do.
func (o *Ops) launch(name string, l device.Launch, args *device.Args) {
	if l.Grid[0] == 0 || l.Grid[1] == 0 {
		return
	}
	f, ok := o.functions[name]
	if !ok {
		panic("cuda: no kernel " + name)
	}
	o.check(o.stream.Launch(f, l, args))
}

// newArgs are no arguments yet.
func (o *Ops) newArgs() *device.Args { return o.args.Reset() }

// launch1D is a thread for each of n elements.
func launch1D(n int) device.Launch {
	return device.Launch{Grid: [3]int{blocks(n, blockThreads), 1, 1}, Block: [3]int{blockThreads, 1, 1}}
}

// launchGroups is a group of N threads for each of n rows.
func launchGroups(n, size int) device.Launch { return launch1D(n * size) }

// launchWarps is a warp for each of n rows.
func launchWarps(n int) device.Launch { return launch2D(blocks(n, blockRows), 1) }

// launch2D is blocks of 32 x 8 threads.
func launch2D(x, y int) device.Launch {
	return device.Launch{Grid: [3]int{x, y, 1}, Block: [3]int{warp, blockRows, 1}}
}

// blocks is how many of a size n elements fill.
func blocks(n, size int) int { return (n + size - 1) / size }

// groupSize is how many threads work on a row of N parts: a power of two, a
// warp at most.
func groupSize(parts int) int {
	size := 1
	for size < parts && size < warp {
		size *= 2
	}
	return size
}

// flag is b as kernels take it.
func flag(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// mask adds what dropout draws from.
func mask(a *device.Args, m kernels.Mask) *device.Args {
	return a.Ptr(vectorPtr(m.IDs)).Uint32(m.Key[0]).Uint32(m.Key[1]).Uint32(m.Epoch).Uint32(m.Layer).Uint32(m.Last).Float32(m.Scale)
}
