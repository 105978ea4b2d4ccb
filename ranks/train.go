package ranks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"siafu/internal/fault"
	"siafu/internal/screen"
	"siafu/internal/signals"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/world"
)

// Config has all options of a run.
type Config = config.Config

// Train trains a network on the dataset folder data with the options c, and writes a run
// folder. Under a launcher every rank calls it; otherwise it starts an in-process world. It
// returns the first failure of any rank.
func Train(_ context.Context, c Config, data string, out IO) error {
	if err := c.Validate(); err != nil {
		return err
	}
	c.Initializer = model.Spec{Kind: c.Model}.Initializer(c.Initializer) // fixed, independent of later versions' defaults
	limits, err := c.Limits(func(msg string) { fmt.Fprintln(out.Err, "siafu: "+msg) })
	if err != nil {
		return err
	}
	v, err := viewOf(&c)
	if err != nil {
		return err
	}
	if err := recovers(&c); err != nil {
		return err
	}
	if err := trainGate(&c, out).world(carried(v), c.Threads/(v.Parts/v.Ranks)); err != nil {
		return err
	}
	if ended, err := ended(&c, data); ended {
		l, launched := world.Launched()
		if err != nil {
			return failOnRank0(l, err)
		}
		if !launched || l.Rank == 0 {
			fmt.Fprintf(out.Out, "the run in %s has already ended\n", c.Out)
		}
		return nil
	}
	watcher := watch(&c, out)
	defer watcher.Close()
	s := newViewSequence(c, data, limits, watcher, out)
	defer s.close()
	if _, launched := world.Launched(); launched && c.Survive {
		starting := time.AfterFunc(startLimit, func() {
			warn(out, "the ranks are not connected after %v: another rank may have ended before", startLimit)
			os.Exit(fault.Runtime.ExitCode())
		})
		s.connected = func() { starting.Stop() }
		defer starting.Stop()
	}
	return launchProcess(c.Ranks, limits, out, func(w world.Comm) error { return s.run(w, v) })
}

// viewOf returns the view of the launcher's world, else of the configured world. An error is
// printed once.
func viewOf(c *Config) (world.View, error) {
	l, launched := world.Launched()
	if !launched {
		return c.View(max(c.Ranks, 1))
	}
	v, err := c.View(l.Size)
	if err != nil {
		err = failOnRank0(l, err)
	}
	return v, err
}

// startLimit is the time in which the ranks of a run that survives losses must be connected. Until then,
// MPI waits for ever if a rank ends.
const startLimit = time.Minute

// recovers returns an error if the launcher would end the job when a rank ends, in a run that survives
// that. The error is printed once.
func recovers(c *Config) error {
	l, launched := world.Launched()
	switch {
	case !c.Survive || !launched:
		return nil
	case l.Name != "mpirun":
		return failOnRank0(l, fault.New(fault.Config, "train", "", "--survive under %s, which ends all ranks when one ends", l.Name).
			Then("use mpirun of Open MPI"))
	case os.Getenv("OMPI_MCA_orte_enable_recovery") != "1" && os.Getenv("PRTE_LAUNCHED") == "": // Open MPI 5 does not report it
		return failOnRank0(l,
			fault.New(fault.Config, "train", "", "--survive under mpirun without --enable-recovery, which ends all ranks when one ends").
				Then("use mpirun --enable-recovery, or siafu launch"))
	}
	return nil
}

// carried returns the number of members of a run's world in this process.
func carried(v world.View) int {
	l, launched := world.Launched()
	if !launched {
		return v.Members()
	}
	return len(v.Carried(l.Rank))
}

// watch starts to handle signals. On rank 0 it reports received signals.
func watch(c *Config, out IO) *signals.Watcher {
	grace, _ := time.ParseDuration(c.Grace) // checked by Validate
	o := signals.Options{Grace: signals.Grace(grace, os.Getenv), Take: func() { screen.Release(out.Out); screen.Release(out.Err) }}
	l, launched := world.Launched()
	o.Ranks = launched && l.Size > 1
	if !launched || l.Rank == 0 {
		o.Log = func(line string) { warn(out, "%s", line) }
	}
	return signals.Watch(o)
}

// modelFile returns the path of the weights in a run folder.
func modelFile(dir string) string { return filepath.Join(dir, "model.safetensors") }
