// Package lambda is a room: what tensor work in AWS Lambda stands on is in the packages
// below it. No run uses them yet: --tensor lambda is refused.
package lambda
