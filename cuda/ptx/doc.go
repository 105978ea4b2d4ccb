// Package ptx interprets the PTX of CUDA kernels on the CPU to check their
// correctness. It is a checker for tests, not a fallback for users: a
// kernel takes thousands of times as long as on a GPU.
//
// New makes a device.Device. What a launch did wrong is a Finding, which some later
// call of the stream returns: accesses out of bounds, to freed memory, or
// misaligned; reads of memory that was never written; races; barriers that not all
// threads of a block come to; shuffles and votes that name lanes which are not
// there; loops without an end; memory of the host that is used while a copy of it is
// under way. A module with a line that is not PTX, or with an
// instruction that is not known here, is an Error when it is loaded.
//
// What it promises. The same calls give the same bits, and the same finding.
// Arithmetic follows IEEE 754 where PTX requires it: add, sub, mul, div.rn, sqrt.rn,
// rcp.rn and fma, in all the roundings that are known, of f32; f64 to the nearest.
// Where PTX has an approximation (ex2, lg2, rsqrt, sin, cos, tanh, div.approx,
// div.full) the result is that of float64, rounded to f32, and so within any bound
// of a GPU's; the bits of a GPU are others.
//
// What it does not see. Blocks run one after another, and atomics take their turns
// from the lowest lane on; Settings.Backwards has blocks and warps run in the
// opposite order, and no other one is tried. Threads that synchronise
// through atomics and flags, rather than barriers or launches, count as racing.
// Nothing is said about accesses of two streams that no event orders, but work of a
// stream waits until somebody asks for its end, so that whoever forgets an event
// reads what is not there yet. Registers that were never written are 0. Nothing is
// said about time on a GPU. Here one core of an EPYC runs 250 to 350 million
// instructions of threads a second (BenchmarkMatMul, BenchmarkSpMM), and a launch
// takes 20 µs.
//
// The text is PTX as in NVIDIA's "Parallel Thread Execution ISA", in the parts that
// clang emits for sm_70. Textures, matrix and asynchronous instructions, arithmetic
// in f16, indirect calls, recursion and barriers of a part of a block are not known.
package ptx
