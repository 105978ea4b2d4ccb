package trials

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"siafu/ranks"
)

// Machine prints the machine and the command line of a table.
func Machine(w io.Writer) {
	fmt.Fprintf(w, "machine: %s, %d processors, %s/%s, %s\n", Processor(), runtime.NumCPU(), runtime.GOOS,
		runtime.GOARCH, runtime.Version())
	if load := Load(); load != "" {
		fmt.Fprintf(w, "load: %s\n", load)
	}
	fmt.Fprintf(w, "siafu: %s%s\n", ranks.Version, Commit())
	fmt.Fprintf(w, "command: siafu bench %s\n", strings.Join(os.Args[1:], " "))
}

// Processor returns the processor's name, "unknown processor" if the system does not give it.
func Processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
