// Package device declares a CUDA backend's interface to a driver: memory of a device, modules
// of PTX text, and streams of copies, fills and launches.
//
// An implementation runs the work of one stream in order, and the work of two
// streams in any order that their events allow. Work may run after the call that
// queued it. A later call on the same stream, Synchronize at the latest, returns
// its error, and every further call on that device fails, because a device is lost
// after a kernel failure. All methods are safe for concurrent use; calls on one
// stream are queued in the order of the calls.
//
// Libraries of products are an optional, separate interface.
//
// Package ptx implements a device that interprets kernels and checks them.
package device
