// Package halo exchanges ghost (halo) rows between partitions.
//
// A Plan stores, in flat arrays, which rows are sent to and received from each rank. It is
// immutable. An Exchange moves rows along a plan. Forward, owners send their rows to the
// ranks that have them as ghosts. Backward, each rank returns the gradients of its ghosts,
// and the owner adds them in ascending order of ranks, so that sums are reproducible. An
// exchange has two halves, Begin and End. Between them, the caller works on what needs no
// ghost rows.
//
// A Source provides ghost rows to gathers and takes own rows from them. Always exchanges
// the rows of every epoch; package refresh has other policies. A History stores rows until
// others replace them. A Batch sends a Part of a plan's rows into a History. Package
// refresh builds its policies from histories and batches.
//
// A Reduction is a plan with fewer rows: if a vertex gathers from many ghosts of one rank,
// that rank sends their sum.
//
// A Directory fetches rows of arbitrary vertices from their owners, and returns gradients: plans do
// not contain the ends of pairs that are no edges. Directory.Request makes a RowSet, which may then
// be fetched any number of times. Gradients are added in ascending order of ranks.
//
// Rows are sent unchanged or through a codec of package codec. Encoded rows are divided
// into chunks. Each chunk is sent as soon as it is encoded, and decoded as soon as it
// arrives, while others are in transit. Received bytes are not trusted: the result is rows
// or an error. The result of an exchange depends only on the rows, the plan and the Key,
// never on workers or timing.
//
// Package comm declares the small communicator interface of halo; package world implements
// it. All ranks of the communicator must call Begin, End and every function marked
// collective in the same order, with the same codec and width.
package halo
