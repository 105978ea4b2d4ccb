// Package device is what a CUDA backend needs of a driver: memory of a device,
// modules of PTX text, and streams that copies, fills and launches are queued on.
//
// Whoever implements it promises that work of one stream runs in order, and work
// of two streams in any order that their events allow. Work may run later than
// the call that queued it; an error of it comes out of a later call on the same
// stream, of Synchronize at the latest, and every call on that device fails from
// then on, since a device that a kernel has failed on is lost. Every method may be
// called from any goroutine; calls on one stream are queued in the order in which
// they are made.
//
// What a device may have beside it, libraries of products, is an interface of its own.
//
// Package ptx has a stand-in that interprets kernels and looks for their faults.
package device
