// Package decodertest holds every decoder to one promise: its memory is
// bounded by a constant and a multiple of the bytes that it was given, whatever
// numbers stand in them.
//
// Bounded measures one call. Tests wrap it round what reads the files that Lies
// makes of good ones, each with one number replaced by a huge one; Heap, which is
// cheaper, stands round fuzz targets. Only tests import this package.
package decodertest
