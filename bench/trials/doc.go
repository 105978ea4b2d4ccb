// Package trials has the common parts of benches that reproduce published tables: it runs
// trainings in separate processes and writes tables and figures from their results.
//
// A Site runs trainings: on this machine directly, or with mpirun on virtual hosts with
// links of a chosen rate (package hosts). A Trial is a training. An Archive stores its
// Result as a file, so an interrupted bench, or one that exceeded its time budget,
// continues where it stopped, and parts share trainings. A Book has parts, each of which
// writes a table and figures to a Sheet. A Study trains systems on graphs, and writes tables
// with a row for each system in each setting. Print writes books as text and as one page.
package trials
