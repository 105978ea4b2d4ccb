package ranks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"siafu/lambda"
	"siafu/lambda/endpoint"
	"siafu/lambda/invoke"
	"siafu/lambda/local"
	"siafu/lambda/pool"
	"siafu/ranks/config"
	"siafu/ranks/engine"
	"siafu/ranks/tensor"
)

// functions has the settings and services for invocations of tensor tasks. Tests replace them
// to inject faults.
type functions struct {
	attemptTimeout time.Duration // maximal duration of an attempt
	repeatAfter    time.Duration // minimal time before an attempt is repeated
	attempts       int           // per task
	concurrency    int           // maximal invocations of a rank, or of a part of a bridge
	fallsBack      bool          // use the CPU if functions keep failing
	local          local.Options
	endpoint       endpoint.Options
	client         invoke.Client      // nil until needed
	service        *local.Service     // of --lambda local, nil until started
	bridge         *endpoint.Endpoint // nil until started
}

// sandboxes is the number of sandboxes per worker in a local service. One sandbox computes while a
// task or result of the other one is in transit.
const sandboxes = 2

// functionSettings returns a run's initial settings, for a rank with the given workers and
// concurrent intervals. With more functions than intervals some are idle (Dorylus, OSDI'21,
// §6).
func (r *member) functionSettings(workers, intervals int) *functions {
	f := &functions{attemptTimeout: time.Minute, repeatAfter: pool.Defaults().Timeout.Floor, attempts: 12,
		concurrency: intervals, fallsBack: true}
	if r.cfg.Lambda == config.LambdaLocal {
		f.concurrency = min(intervals, sandboxes*workers)
	}
	f.concurrency = cmp.Or(r.cfg.LambdaAtOnce, f.concurrency)
	f.local = local.Options{Name: r.cfg.FunctionName(), Concurrency: f.concurrency, Timeout: f.attemptTimeout}
	r.addSandboxFaults(&f.local)
	f.endpoint.Listen, f.endpoint.Advertise = r.cfg.Bridge()
	if r.functions != nil {
		r.functions(f)
	}
	return f
}

// spareConnections is the number of connections of an endpoint in addition to running
// invocations: idle functions may still hold one.
const spareConnections = 64

// invoke makes the backend of a graph rank with tensor work in functions. The engine closes
// it.
func (r *joined) invoke() (tensor.Backend, error) {
	options, err := engine.RequestOptions(&r.cfg)
	if err != nil {
		return nil, err
	}
	f := r.functionSettings(r.threads, r.cfg.IntervalsOf(r.net, r.shard.NumOwn(), int64(len(r.shard.In.Cols))))
	n := lambda.Network{Spec: r.net, Sparse: r.shard.Features.Sparse != nil, Kernel: r.cfg.KernelVariant()}
	t, err := r.transport(f, n)
	if err != nil {
		return nil, err
	}
	b := tensor.NewRemote(t, options, f.settings(), func(line string) {
		fmt.Fprintf(os.Stderr, "siafu: train: %s: %s\n", r.name(), line)
	})
	b.Charge(r.cfg.Tariff(), f.attemptTimeout)
	if r.cfg.LambdaAtOnce == 0 {
		b.Tune(pool.NewTuner(f.concurrency))
	}
	return b, nil
}

// transport returns the transport of a graph rank's tasks: through its bridge, if there is
// one.
func (r *member) transport(f *functions, n lambda.Network) (tensor.Transport, error) {
	if r.client != nil {
		return r.client, r.client.Begin(n)
	}
	return f.open(&r.cfg, n, f.close)
}

// transportOpener returns a function that opens a bridge rank's transports for its parts,
// until close.
func (r *member) transportOpener() (open func(int, lambda.Network) (tensor.Transport, error), close func() error) {
	f := r.functionSettings(runtime.NumCPU(), max(r.cfg.Intervals, config.MostIntervals))
	f.local.Concurrency *= len(r.view.Bridged(r.everyone.Rank())) // each part bounds its own
	return func(_ int, n lambda.Network) (tensor.Transport, error) { return f.open(&r.cfg, n, nil) }, f.close
}

// open makes a transport for the tasks of a network, which calls last at its end.
func (f *functions) open(c *Config, n lambda.Network, last func() error) (tensor.Transport, error) {
	if f.client == nil {
		if err := f.start(c); err != nil {
			err = errors.Join(err, f.close())
			f.service, f.bridge = nil, nil
			return nil, err
		}
	}
	return invoke.New(invoke.Options{
		Client: f.client, Function: c.FunctionName(), Network: n, AtOnce: f.concurrency, Endpoint: f.bridge,
		Timeout: 2 * f.attemptTimeout, // a late result may still be the first
		Close:   last,
	})
}

// settings returns the settings of the pool that schedules a rank's invocations.
func (f *functions) settings() pool.Settings {
	s := pool.Defaults()
	s.Limit, s.Attempts, s.InvocationLimit = f.concurrency, f.attempts, 2*f.attemptTimeout
	s.Timeout.Ceiling, s.Timeout.Floor = f.attemptTimeout, min(f.repeatAfter, f.attemptTimeout)
	s.Backoff = pool.Pause{First: leastPause, Most: mostPause}
	if !f.fallsBack {
		s.Breaker = pool.Breaker{}
	}
	return s
}

// leastPause and mostPause bound the wait between a failure and the next attempt.
const (
	leastPause = 50 * time.Millisecond
	mostPause  = 5 * time.Second
)

// start listens for functions, and finds the service for invocations.
func (f *functions) start(c *Config) (err error) {
	if f.bridge == nil {
		f.endpoint.Connections = 4*f.concurrency + spareConnections
		if f.bridge, err = endpoint.Start(f.endpoint); err != nil {
			return err
		}
	}
	if c.Lambda == config.LambdaAWS {
		aws, err := invoke.AWS(context.Background(), f.concurrency)
		if err == nil {
			f.client = aws
		}
		return err
	}
	if f.local.Function, err = lambda.Executable(c.LambdaFunction, runtime.GOARCH); err != nil {
		return err
	}
	f.local.Targets = []string{f.bridge.Address()}
	if f.service, err = local.Start(f.local); err != nil {
		return err
	}
	f.client = invoke.Local(f.service, f.local.Concurrency)
	return nil
}

// close ends the local service and the endpoint, if there are any.
func (f *functions) close() (err error) {
	if f.service != nil {
		err = f.service.Close()
	}
	if f.bridge == nil {
		return err
	}
	s := f.bridge.Stats()
	s.Refused[endpoint.Withdrawn], s.Refused[endpoint.Broken] = 0, 0 // abandoned functions
	if s.Refusals() > 0 {                                            // possibly an unauthorised connection
		fmt.Fprintf(os.Stderr, "siafu: train: the data endpoint %s rejected requests: %s\n", f.bridge.Address(), s.RefusalSummary())
	}
	return errors.Join(err, f.bridge.Close())
}

// findFunction reports that tensor work can run on processors and in functions, and
// whether the function of --lambda local exists.
func findFunction(f *doctorReport) {
	path, err := lambda.Executable("", runtime.GOARCH)
	if err == nil {
		_, err = os.Stat(path)
	}
	remedy := ""
	if err != nil {
		remedy = `"make function" builds it`
	}
	f.add("tensor", "", "cpu", true, "lambda", true)
	f.add("lambda", remedy, "function", path, "available", err == nil)
}
