// Package refresh has the policies of refreshing ghost rows: when rows are sent, and how
// stale the used rows may be. A policy is a halo.Source; halo.Always, which is exact, is
// one too.
//
// Previous and Timed are for synchronous passes, Bounded is for bounded asynchrony, and
// Pushed is for the fully asynchronous mode. Each policy knows the epoch of every row that
// it provides, and returns it in a halo.View. Timed covers many policies; the timetable of
// each is in its own file. Parse parses their names.
package refresh
