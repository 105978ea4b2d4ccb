// Package parts lays a world of parts over a world of ranks: each rank carries
// one part or several (world.View), each a goroutine with a communicator of its
// own, and servers lie on ranks of their own. To whoever runs in it, the world is
// one with a rank for each part, whatever carries them.
//
// Parts of one rank exchange bytes through memory, as package inproc has it; what
// goes to parts of other ranks travels as messages of the world below, which needs
// no collective of that world once it has begun. Sums, which package world takes
// in the order of ranks, are therefore taken in the order of parts, and have the
// same bits on any number of ranks.
//
// A block that all parts of a rank get goes to that rank once. A long block for
// one part is sent from where it stands and received where it is wanted: no rank
// keeps copies of it, and a part that gives up a collective has its buffers back
// only when the view ends, as under MPI. A failure of one part ends all parts of
// its rank, and is the rank's. Limits with a Name say which part waits.
//
// A view can be replaced (Through): between two views nothing is on its way, ranks
// agree on the next one, parts move, and each view has communicators of its own.
package parts
