// Package decodertest checks that the memory of a decoder is bounded by a constant
// plus a multiple of the input size, whatever numbers the input contains.
//
// Bounded measures one call. Lies creates damaged files from good ones: in each
// file one number is replaced by a huge one. Tests read these files within
// Bounded. Heap is cheaper and is meant for fuzz targets. Only tests import this
// package.
package decodertest
