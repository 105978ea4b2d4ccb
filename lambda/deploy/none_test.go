//go:build !lambda

package deploy

import (
	"io"
	"strings"
	"testing"

	"siafu/graph/fault"
)

// A build without the AWS SDK says so, and how to make one that has it.
func TestNoLambda(t *testing.T) {
	for name, err := range map[string]error{
		"deploy": Deploy(t.Context(), Options{}, io.Discard), "status": Status(t.Context(), StatusOptions{}, io.Discard), "remove": Remove(t.Context(), RemoveOptions{}, io.Discard),
	} {
		if fault.ExitCode(err) != 78 || !strings.Contains(err.Error(), "make build LAMBDA=1") {
			t.Errorf("%s: exit %d, %v", name, fault.ExitCode(err), err)
		}
	}
}
