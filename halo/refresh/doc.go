// Package refresh has the policies of refreshing ghosts: when the rows travel
// that a rank holds of other ranks' vertices, and how old those are that it
// uses. A policy is a halo.Source; halo.Always, which is exact, is one too.
package refresh
