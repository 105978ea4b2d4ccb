// Package refresh has the policies of refreshing ghosts: when the rows travel
// that a rank holds of other ranks' vertices, and how old those are that it
// uses. A policy is a halo.Source; halo.Always, which is exact, is one too.
//
// Previous and Timed are for synchronous passes, Bounded for bounded asynchrony. Each
// knows of which epoch every row is that it gives, and says so in a halo.View. Timed is
// many policies, each of which is a timetable in a file of its own; Parse reads their
// names.
package refresh
