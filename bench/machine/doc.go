// Package machine measures the limits of this machine, for a set of instructions and a number of threads:
// multiply-adds in registers, and bytes read from each cache and from memory, sequentially and by random rows.
// Start at Measure. The loops share no code with package kernels, whose speed is compared with them.
//
// Package gen generates the assembly with avo.
package machine
