// Package codec encodes rows of float32 as blocks of bytes, and decodes them.
//
// A Codec is a stateless function of rows, and of a Key if it rounds at random. It works on
// any part of a message, so that a long message can be sent in several blocks. It reads
// rows from their arrays and writes or adds them to their destination. ByName returns a
// codec by name. Several goroutines may call its methods at once. They do not allocate once
// their buffers have grown.
//
// Blocks describe themselves, and received bytes are not trusted: the result is rows or an
// error. Memory beyond the caller's is bounded by the number of rows and columns.
//
// A Feedback adds rounding errors to the next rows of the same sender.
package codec
