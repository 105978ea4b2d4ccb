// Package codec makes blocks of bytes of rows of float32, and rows of blocks.
//
// A Codec is a stateless function: of rows, and of a Key where it rounds at
// random. It works on any part of a message, so that a long one can travel in
// several blocks, and reads rows where they lie and writes, or adds, them where
// they belong. ByName knows all of them. Its methods may be called by several
// goroutines at once and do not allocate once their buffers have grown.
//
// Blocks describe themselves and are decoded defensively: whatever the bytes,
// the answer is rows or an error, and memory beyond the caller's is bounded by
// what rows and columns justify.
//
// What rounding loses, a Feedback adds to the next rows of the same sender.
package codec
