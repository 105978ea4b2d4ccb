// Package digest reproduces the tables and figures of DIGEST (ICLR'23 submission,
// §5 and appendix A.3), which compare ways of training with ghosts that are not those
// of the epoch: which accuracy each reaches, in which time, over which link, with which
// bytes and memory.
//
// A system is a name and flags of train. A part is a table or figure: what it shows of
// trainings. Trainings are shared by parts and kept in a folder, so that a bench that
// was interrupted, or whose hours were over, goes on where it was.
//
// Two kinds of trainings are put together. Accuracy and bytes of a synchronous system
// depend on neither machine nor link: they come from runs in one process, with several
// seeds. What an epoch takes comes from a few epochs under mpirun, over links of the
// chosen rate between hosts made of this machine, all systems in turns. Where a system's
// accuracy depends on time, as in bounded asynchrony, whole runs go over the link.
package digest
