// Package deploy puts the function of tensor work into an AWS account, says what is
// there, and removes it: the function, and a role for it where that was asked for.
//
// What it makes carries the tag siafu=NAME, and it changes and deletes nothing without
// that tag. A deployment says what a function is to be; only what differs is changed,
// so that a second one makes no changing call. Where a first one fails half-way, what
// it has made is removed. Nothing here invokes the function.
package deploy
