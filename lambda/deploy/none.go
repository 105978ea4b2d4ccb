//go:build !lambda

package deploy

import (
	"context"
	"io"

	"siafu/graph/fault"
)

// absent is what the commands say in a build without the AWS SDK.
func absent() error {
	return fault.New(fault.Config, "lambda", "", "this siafu has been built without AWS Lambda").Then("build one with it: make build LAMBDA=1")
}

// Deploy needs a build with Lambda.
func Deploy(context.Context, Options, io.Writer) error { return absent() }

// Status needs a build with Lambda.
func Status(context.Context, StatusOptions, io.Writer) error { return absent() }

// Remove needs a build with Lambda.
func Remove(context.Context, RemoveOptions, io.Writer) error { return absent() }
