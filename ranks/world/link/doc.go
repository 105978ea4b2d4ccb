// Package link measures latency and bandwidth between the ranks of a world: the time of a
// small message, and the bytes per second of a large one. "siafu doctor" prints the result,
// and the choice of a codec may use it.
package link
