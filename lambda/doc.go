// Package lambda holds the function, its pool and its bill for tensor work
// in AWS Lambda. This build has none of them yet: --tensor lambda is refused
// with that sentence.
package lambda
