package ranks

import (
	"time"

	"siafu/lambda"
	"siafu/lambda/local"
	"siafu/ranks/config"
)

// lossTimeout is the function's timeout with injected losses: the service's default. Each lost
// invocation holds its sandbox for this time.
const lossTimeout = 3 * time.Second

// addSandboxFaults sets the limits and faults of local sandboxes. Each rank has its own random
// times of faults.
func (r *member) addSandboxFaults(o *local.Options) {
	o.Memory = r.cfg.LambdaMemory
	switch r.cfg.LambdaLimits {
	case config.LimitsMemory:
		o.Limits.Memory = true
	case config.LimitsAWS:
		o.Limits = local.LikeAWS()
	}
	o.Faults, _ = lambda.ParseFaults(r.cfg.LambdaFaults) // checked by Validate
	o.Faults.Seed += uint64(r.everyone.Rank())
	if o.Faults.Lose > 0 {
		o.Timeout = lossTimeout
	}
}
