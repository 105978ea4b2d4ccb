// Package digest reproduces the tables and figures of DIGEST (ICLR'23 submission,
// §5 and appendix A.3). They compare training methods with stale ghost rows: accuracy,
// time, link, bytes and memory.
//
// A system is a name and flags of train. A part is a table or figure computed from
// trainings. Parts share trainings, which are stored in a folder, so an interrupted bench,
// or one that exceeded its time budget, continues where it stopped.
//
// Two kinds of trainings are combined. Accuracy and bytes of a synchronous system depend
// on neither machine nor link: they come from runs in one process, with several seeds.
// Epoch times come from a few epochs under mpirun, over links of the chosen rate between
// virtual hosts on this machine, with the systems interleaved. If a system's accuracy
// depends on time, as with bounded asynchrony, whole runs use the link.
package digest
