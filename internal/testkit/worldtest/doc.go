// Package worldtest is the conformance suite of package world, which the communicators of every
// implementation must pass.
package worldtest
