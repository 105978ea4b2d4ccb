// Standin is a rank whose epochs only sleep. It behaves as package launch and the batch scripts
// require, and can crash on request, so that both can be tested in seconds.
//
//	standin train DATA --out DIR [--resume auto] [--epochs N] [--nap D] [--crash-at E] [--until-stopped yes]
//
// With --until-stopped the first start has no last epoch, so that a signal cannot come too late.
// DIR/epoch is the checkpoint. DIR/log has a line for every start and end.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"siafu/ranks/world"
	"siafu/ranks/world/mpi"
	"siafu/slurm/launch"
)

func main() {
	stop := make(chan os.Signal, 8)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	end, _ := launch.Join(os.Args[1:])
	code, err := train(os.Args[2:], stop, end)
	if err != nil {
		fmt.Fprintln(os.Stderr, "standin:", err)
		code = 1
	}
	end(code, err)
	os.Exit(code)
}

func value(args []string, flag, absent string) string {
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, flag+"="); ok {
			return v
		}
		if a == flag && i+1 < len(args) {
			return args[i+1]
		}
	}
	return absent
}

// train reports a stop with end before it stops the MPI library, which waits for mpirun.
func train(args []string, stop <-chan os.Signal, end func(int, error)) (int, error) {
	epochs, _ := strconv.Atoi(value(args, "--epochs", "10"))
	crashAt, _ := strconv.Atoi(value(args, "--crash-at", "0"))
	nap, err := time.ParseDuration(value(args, "--nap", "50ms"))
	if err != nil {
		return 0, err
	}
	w, leave, err := mpi.Start(world.Limits{Abort: time.Minute})
	if err != nil {
		return 0, err
	}
	r := &run{w: w, dir: value(args, "--out", ""), stop: stop}
	first, err := r.begin(value(args, "--resume", ""), args)
	if err != nil {
		w.Abort(64, err)
	}
	endless := first == 1 && value(args, "--until-stopped", "") != ""
	for e := first; e <= epochs || endless; e++ {
		time.Sleep(nap)
		if e == crashAt && first == 1 && w.Rank() == w.Size()-1 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		stopping, err := r.epoch(e)
		if err != nil {
			return 0, err
		}
		if stopping && (e < epochs || endless) {
			r.log("stopped after=%d", e)
			end(75, nil)
			leave()
			return 75, nil
		}
	}
	r.log("finished")
	leave()
	return 0, nil
}

type run struct {
	w    world.Comm
	dir  string
	stop <-chan os.Signal
}

// begin returns the first epoch to train. Collective.
func (r *run) begin(resume string, args []string) (int, error) {
	_, err := os.Stat(filepath.Join(r.dir, "epoch"))
	if err == nil && resume != "auto" {
		return 0, fmt.Errorf("%s exists already", r.dir)
	}
	if err := r.w.Barrier(); err != nil {
		return 0, err
	}
	text, _ := os.ReadFile(filepath.Join(r.dir, "epoch"))
	done, _ := strconv.Atoi(string(text))
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return 0, err
	}
	r.log("start epoch=%d ranks=%d gpus=%s args=%s", done+1, r.w.Size(), os.Getenv("SLURM_GPUS_ON_NODE"), strings.Join(args, " "))
	return done + 1, nil
}

// epoch saves, and reports whether any rank has received a request to stop. Collective.
func (r *run) epoch(e int) (bool, error) {
	asked := []byte{0}
	if len(r.stop) > 0 {
		asked[0] = 1
	}
	all := make([]byte, r.w.Size())
	if err := r.w.Allgatherv(asked, all, slices.Repeat([]int{1}, r.w.Size())); err != nil {
		return false, err
	}
	if r.w.Rank() == 0 {
		if err := os.WriteFile(filepath.Join(r.dir, "epoch"), []byte(strconv.Itoa(e)), 0o644); err != nil {
			return false, err
		}
	}
	return slices.Contains(all, 1), nil
}

// log appends a line to DIR/log on rank 0.
func (r *run) log(format string, args ...any) {
	if r.w.Rank() != 0 {
		return
	}
	f, err := os.OpenFile(filepath.Join(r.dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	defer f.Close()
	fmt.Fprintf(f, format+"\n", args...)
}
