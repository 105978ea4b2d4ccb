// Package ptx interprets the PTX of CUDA kernels on the CPU to check their
// correctness. It is a checker for tests, not a fallback for users: a
// kernel takes thousands of times as long as on a GPU.
//
// New makes a device.Device. An error of a launch is a Finding, which a later call of the
// stream returns: accesses out of bounds, to freed memory, or misaligned; reads of memory that
// was never written; races; barriers that not all threads of a block reach; shuffles and votes
// that name absent lanes; endless loops; host memory used during a copy. Loading a module with
// a line that is not PTX, or with an unknown instruction, returns an Error.
//
// Guarantees. The same calls give the same bits, and the same finding. Arithmetic follows IEEE
// 754 where PTX requires it: add, sub, mul, div.rn, sqrt.rn, rcp.rn and fma, in all supported
// roundings of f32; f64 rounds to nearest. Where PTX has an approximation (ex2, lg2, rsqrt,
// sin, cos, tanh, div.approx, div.full) the result is float64's, rounded to f32, and thus
// within any bound of a GPU's; a GPU's bits differ.
//
// Limits. Blocks run sequentially, and atomics in order from the lowest lane.
// Settings.Backwards reverses the order of blocks and warps; no other order is tried. Threads
// that synchronise through atomics and flags, rather than barriers or launches, count as
// racing. Accesses of two streams without an event between them are not reported. But a
// stream's work is delayed until its end is awaited, so that a missing event causes reads of
// missing data. Unwritten registers are 0. Times are not a GPU's: one core of an EPYC runs 250
// to 350 million thread instructions per second (BenchmarkMatMul, BenchmarkSpMM), and a launch
// takes 20 µs.
//
// The text is PTX as in NVIDIA's "Parallel Thread Execution ISA", in the parts that clang
// emits for sm_70. Textures, matrix and asynchronous instructions, arithmetic in f16, indirect
// calls, recursion and barriers of a part of a block are not supported.
package ptx
