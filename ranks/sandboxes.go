package ranks

import (
	"time"

	"siafu/lambda"
	"siafu/lambda/local"
	"siafu/ranks/config"
)

// lossTimeout is the function's timeout where invocations are to be lost: the service's
// own default. Each of them holds its place for so long.
const lossTimeout = 3 * time.Second

// addSandboxFaults gives local sandboxes the limits and faults that they are to have. Each rank's
// faults come at times of their own.
func (r *run) addSandboxFaults(o *local.Options) {
	o.Memory = r.cfg.LambdaMemory
	switch r.cfg.LambdaLimits {
	case config.LimitsMemory:
		o.Limits.Memory = true
	case config.LimitsAWS:
		o.Limits = local.LikeAWS()
	}
	o.Faults, _ = lambda.ParseFaults(r.cfg.LambdaFaults) // the configuration is a valid one
	o.Faults.Seed += uint64(r.everyone.Rank())
	if o.Faults.Lose > 0 {
		o.Timeout = lossTimeout
	}
}
