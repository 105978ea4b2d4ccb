// Package trials is what benches of published tables share: trainings in processes of
// their own, and a book of tables and figures made of what they leave.
//
// A Site is where trainings run: this machine as it is, or mpirun on hosts made of it,
// whose links have a chosen rate (package hosts). A Trial is a training whose Result an
// Archive keeps as a file, so that a bench that was interrupted, or whose hours were
// over, goes on where it was, and parts share trainings. A Book has parts, each of which
// writes a table and figures; Print writes books as text and as one page.
package trials
