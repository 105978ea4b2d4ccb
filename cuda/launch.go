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

// newArgs returns an empty list of arguments.
func (o *Ops) newArgs() *device.Args { return o.args.Reset() }

// launch1D returns a launch with a thread for each of n elements.
func launch1D(n int) device.Launch {
	return device.Launch{Grid: [3]int{blocks(n, blockThreads), 1, 1}, Block: [3]int{blockThreads, 1, 1}}
}

// launchGroups returns a launch with a group of size threads for each of n rows.
func launchGroups(n, size int) device.Launch { return launch1D(n * size) }

// launchWarps returns a launch with a warp for each of n rows.
func launchWarps(n int) device.Launch { return launch2D(blocks(n, blockRows), 1) }

// launch2D returns a launch of blocks of 32 x 8 threads.
func launch2D(x, y int) device.Launch {
	return device.Launch{Grid: [3]int{x, y, 1}, Block: [3]int{warp, blockRows, 1}}
}

// blocks returns the number of blocks of the given size for n elements.
func blocks(n, size int) int { return (n + size - 1) / size }

// groupSize returns the number of threads for a row of the given parts: a power of two, at
// most a warp.
func groupSize(parts int) int {
	size := 1
	for size < parts && size < warp {
		size *= 2
	}
	return size
}

// flag returns b as a kernel argument.
func flag(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// mask appends the arguments of a dropout mask.
func mask(a *device.Args, m kernels.Mask) *device.Args {
	return a.Ptr(vectorPtr(m.IDs)).Uint32(m.Key[0]).Uint32(m.Key[1]).Uint32(m.Epoch).Uint32(m.Layer).Uint32(m.Last).Float32(m.Scale)
}
