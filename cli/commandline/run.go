package commandline

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/screen"
	"siafu/ranks/world"
	"siafu/slurm/launch"
)

// Console contains the input and output of a command.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	Last     func(error) // receives an error that ends all ranks at once
	Lead     func()      // called on a rank that continues to write the output of a lost one
	Done     func(error) // receives the result of a rank before its end, which may wait for the launcher
}

// exit is the panic value for kong's exits (after help). Run recovers it, so that the process
// does not end.
type exit int

// Main runs do with these arguments and the streams of this process, and ends the process.
func Main(args []string, do func([]string, Console) error) {
	// If the reader closes the pipe, as in "siafu report … | head", the process ends without an
	// error message.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(Run(args, os.Stdin, os.Stdout, os.Stderr, do))
}

// Run calls do, prints its error and returns the exit code.
func Run(args []string, in io.Reader, out, errOut io.Writer, do func([]string, Console) error) (code int) {
	end, last := launch.Join(args)
	out, errOut = screen.Streams(out, errOut)
	var err error
	defer func() { end(code, err) }()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exit:
			code = int(r)
		default:
			fmt.Fprintf(errOut, "siafu: internal error: %v\n%s", r, debug.Stack())
			code = 1
		}
	}()
	err = catch(do, args, Console{in, out, errOut, last, launch.Lead, func(err error) { end(fault.ExitCode(err), err) }})
	if err != nil && !silent(err) {
		fmt.Fprintf(errOut, "siafu: %v\n", err)
	}
	if ended := (*launch.Ended)(nil); errors.As(err, &ended) {
		return ended.Code
	}
	return fault.ExitCode(err)
}

// catch converts faults of mapped files to errors.
func catch(do func([]string, Console) error, args []string, c Console) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer mapped.Catch(&err)
	return do(args, c)
}

// silent reports whether this process must not print an error: it was already printed, the
// output is closed, or rank 0 reports it for all ranks.
func silent(err error) bool {
	var reported interface{ Reported() bool }
	if errors.As(err, &reported) || errors.Is(err, syscall.EPIPE) {
		return true
	}
	l, launched := world.Launched()
	if !launched || l.Rank == 0 || fault.KindOf(err) != fault.Usage {
		return false
	}
	l.WaitForRank0()
	return true
}
