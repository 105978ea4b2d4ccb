// Package machine measures the limits of this machine, for a set of instructions and a number of threads:
// multiply-adds in registers, exponentials, and bytes read from each cache and from memory, sequentially and by
// random rows. Start at Limits. The loops share no code with package kernels, whose speed is compared with them.
package machine
