// Package worldtest is the conformance suite of communicators: what package
// world promises, every world must pass.
package worldtest
