package ranks

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/ranks/world"
	"siafu/ranks/world/mpi"
	"siafu/ranks/world/parts"
)

// IO is the output of rank 0: results go to Out, warnings to Err. Last may be nil. It
// receives the error for which a rank is about to end all other ranks. Lead may be nil. It is called
// on another rank that continues to write the output after rank 0 is lost. Done may be nil. It receives
// the result of this rank before the MPI library is stopped, which may wait for mpirun. Watch may be nil. It
// wraps the Ops of each worker (engine.Machine).
type IO struct {
	Out, Err io.Writer
	Last     func(error)
	Lead     func()
	Done     func(error)
	Watch    func(kernels.Ops) kernels.Ops
}

func (io IO) done(err error) {
	if io.Done != nil {
		io.Done(err)
	}
}

// reported is an error that this process must not print: it is already printed, or another
// rank prints it.
type reported struct{ error }

func (r reported) Unwrap() error { return r.error }

// Reported reports that the error has been printed, so that main does not print it again.
func (r reported) Reported() bool { return true }

// agreed is an error that every rank of the world has.
type agreed struct{ error }

func (a agreed) Unwrap() error { return a.error }

// agree makes all ranks fail with the error of the first rank that has one. If they cannot
// agree, for example because a rank does not respond, each fails on its own. Collective.
func agree(w world.Comm, err error) error {
	err = world.Agree(w, err)
	if shared := (*world.AgreedError)(nil); errors.As(err, &shared) || err != nil && w.Size() == 1 {
		return agreed{err}
	}
	return err
}

// launch runs body on every rank: in the launcher's world, else in an in-process world of n
// ranks (0 means 1). kind is "mpi" or "in-process".
func launch(n int, limits world.Limits, out IO, body func(w world.Comm, kind string) error) error {
	size := max(n, 1)
	if l, launched := world.Launched(); launched {
		size = l.Size
	}
	return launchParts(n, world.Flat(size), limits, out, func(w world.Comm, kind string, _ world.Limits) error { return body(w, kind) })
}

// launchParts runs body for each part and each server of a view, like launch. The limits of body
// name the parts.
func launchParts(n int, v world.View, limits world.Limits, out IO, body func(w world.Comm, kind string, limits world.Limits) error) error {
	return launchProcess(n, limits, out, func(process world.Comm) error {
		return runParts(process, v, func(w world.Comm) (err error) {
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			defer mapped.Catch(&err) // a failed allocation or an unreadable file is an error of this rank
			named := limitsOf(v, limits)
			w.SetLimits(named)
			return body(w, kindOf(process), named)
		})
	})
}

// runParts runs body for each part and each server of a view that this process carries. w is
// nil without a launcher.
func runParts(w world.Comm, v world.View, body func(w world.Comm) error) error {
	switch {
	case w == nil:
		return parts.InProcess(v, body)
	case v.Flat():
		return body(w)
	}
	return parts.RunParts(w, v, body)
}

// kindOf returns the kind of a world of processes; nil means one process.
func kindOf(w world.Comm) string {
	if w == nil {
		return "in-process"
	}
	return "mpi"
}

// limitsOf returns limits that name the parts of a view.
func limitsOf(v world.View, l world.Limits) world.Limits {
	if !v.Flat() {
		l.Name = v.Name
	}
	return l
}

// launchProcess runs body on this process's rank of the launcher's world, or with nil without a
// launcher.
func launchProcess(n int, limits world.Limits, out IO, body func(w world.Comm) error) error {
	l, launched := world.Launched()
	if !launched {
		return body(nil)
	}
	if n != 0 {
		return failOnRank0(l, fault.New(fault.Usage, "launch", "", "--ranks=%d under %s, which started %d ranks", n, l.Name, l.Size).
			Then("leave --ranks out, or run siafu without %s", l.Name))
	}
	return launchMPI(l, limits, out, body)
}

// failOnRank0 makes only rank 0 print the error.
func failOnRank0(l world.Launch, err error) error {
	if l.Rank == 0 {
		return err
	}
	l.WaitForRank0()
	return reported{err}
}

func launchMPI(l world.Launch, limits world.Limits, out IO, body func(w world.Comm) error) error {
	w, stop, err := mpi.Start(limits)
	if err != nil {
		return failOnRank0(l, err)
	}
	if w.Size() != l.Size {
		stop()
		return failOnRank0(l,
			fault.New(fault.Config, "launch", "", "%s started %d ranks, but %s sees a world of %d",
				l.Name, l.Size, mpi.Library(), w.Size()).
				Then("start siafu with the launcher of %s, or build it for this one: make build MPICC=ITS-MPICC", mpi.Library()))
	}
	err = body(w)
	switch excluded := (*world.ExcludedError)(nil); {
	case errors.As(err, &excluded): // the other ranks may continue
		mpi.Forsake(w)
		stop()
		fmt.Fprintf(out.Err, "siafu: rank %d on %s: %v\n", w.Rank(), w.Hosts()[w.Rank()], err)
		return reported{err}
	case err == nil:
		out.done(nil)
		stop()
		return nil
	case errors.As(err, &agreed{}):
		// All ranks have the same error: rank 0 prints it before any rank ends, because a
		// launcher may kill the rest after the first exit.
		if w.Rank() == 0 {
			fmt.Fprintf(out.Err, "siafu: %v\n", err)
		}
		out.done(err)
		if !mpi.Forsaken(w) {
			stop() // waits for all ranks, also for those without members, which have no error
		}
		l.WaitForRank0() // rank 0 must end first: launchers report the first exit code
		return reported{err}
	}
	fmt.Fprintf(out.Err, "siafu: rank %d on %s: %v\n", w.Rank(), w.Hosts()[w.Rank()], err)
	if out.Last != nil {
		out.Last(err)
	}
	w.Abort(fault.ExitCode(err), err)
	return reported{err}
}
