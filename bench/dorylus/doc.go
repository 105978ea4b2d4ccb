// Package dorylus reproduces the tables and figures of Dorylus (OSDI'21, §7; the same
// experiments are §2.7 of Thorpe's thesis): full-graph training with tensor work in
// Lambda functions, compared with CPUs and GPUs, synchronous and with bounded
// asynchrony, and compared with training on sampled mini-batches.
//
// Every number has one of four kinds, given in the head of its column:
//
//	paper      as printed
//	measured   on this machine, on a graph of the scale in table 1
//	modelled   from measured numbers, for the paper's clusters and sizes, by Model; on GPUs
//	           from the bytes and operations of the kernels and published figures of the GPU
//	simulated  by package simulate, from the timeline of a measured run
//
// An experiment that cannot run here (GPUs, a missing function, a competitor that is not
// installed) is a row with "not run" and the reason.
package dorylus
