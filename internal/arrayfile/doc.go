// Package arrayfile implements siafu's array file format: named arrays after a
// header page that lists them with their checksums.
//
//	offset  bytes
//	0       8     magic "SIAFUARR"
//	8       4     version, 1
//	12      4     number of arrays, at most 63
//	16      32    kind, zero-padded: what the file is for
//	48      8     length of the file
//	56      4     CRC-32C of this page, taken with this field zero
//	60      4     zero
//	64      64    an entry an array:
//	              0  32  name, zero-padded
//	              32  4  element type
//	              36  4  CRC-32C of the array
//	              40  8  number of elements
//	              48  8  offset in the file, a multiple of 4096
//	              56  8  zero
//
// The arrays follow in the order of their entries. Everything is
// little-endian. A file is written atomically and synced. Opening a file verifies
// every checksum; for any content the result is a File or a fault.
package arrayfile
