//go:build !lambda

package ranks

import (
	"strings"
	"testing"

	"siafu/graph/fault"
	"siafu/ranks/config"
)

// A build without Lambda says so, and how to make one that has it.
func TestNoLambda(t *testing.T) {
	c := quick(t)
	c.Tensor, c.Lambda = config.TensorLambda, config.LambdaLocal
	err := Train(t.Context(), c, generated(t, true), IO{})
	if fault.ExitCode(err) != 78 || !strings.Contains(err.Error(), "make build LAMBDA=1") {
		t.Errorf("exit %d, %v", fault.ExitCode(err), err)
	}
}
