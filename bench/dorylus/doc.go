// Package dorylus reproduces the tables and figures of Dorylus (OSDI'21, §7; the same
// experiments are §2.7 of Thorpe's thesis): whole-graph training whose tensor work runs
// in Lambda functions, beside the same on CPUs and on GPUs, in step and in bounded
// asynchrony, and beside training in sampled mini-batches.
//
// Every number is one of four kinds, and the head of its column says which:
//
//	paper      as printed
//	measured   on this machine, on a graph of the scale that table 1 says
//	modelled   from measured numbers, for the paper's clusters and sizes, by Model
//	simulated  by package simulate, from the timeline of a measured run
//
// What cannot run here (GPUs, a missing function, a rival that is not installed) is a row
// that says "not run", and why.
package dorylus
