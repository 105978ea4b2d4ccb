package launch

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"siafu/internal/fault"
	"siafu/ranks/world/mpi"
)

// dialect is how a launcher of MPI processes is called and how it handles signals.
type dialect struct {
	name     string // of the MPI that the launcher belongs to
	flags    func(o *Options, p place) []string
	stop     syscall.Signal // forwarded to the ranks, which then stop
	shielded bool           // SIGTERM would end the launcher
	reports  bool           // it prints a line for each forwarded signal
	survives bool           // it can continue after the loss of a rank
	raw      bool           // its exit code after a rank's end by a signal is the number of the signal
	names    names
}

// names are those of Open MPI's daemons: of their parameters, their program, and their start on other hosts.
type names struct{ prefix, daemon, shell string }

// Dialects, observed with Open MPI 4.1 and 5.0, and MPICH 4.0. Hydra, the launcher of MPICH and its descendants,
// forwards SIGTERM and SIGUSR1 to the ranks and waits for them; SIGUSR2 ends it. It ends all ranks when a
// signal ends one.
var (
	openMPI = dialect{name: "Open MPI", flags: (*Options).mpirun, stop: syscall.SIGUSR2, shielded: true, reports: true, survives: true,
		names: names{"orte", "orted", "rsh"}}
	prrte = dialect{name: "Open MPI", flags: (*Options).mpirun, stop: syscall.SIGUSR2, shielded: true, survives: true,
		names: names{"prte", "prted", "ssh"}}
	hydra = dialect{name: "MPICH", flags: (*Options).hydra, stop: syscall.SIGTERM, raw: true}
	slurm = dialect{name: "Slurm", flags: (*Options).srun, stop: syscall.SIGUSR2, shielded: true}
)

// shellCode returns the exit code that a shell would report for the end of the ranks. Codes up to 2 are
// those of programs.
func (d *dialect) shellCode(code int) int {
	if d != nil && d.raw && code > 2 && code < 32 {
		return 128 + code
	}
	return code
}

// askTime limits the answer of a launcher to --version.
const askTime = 20 * time.Second

// versions are what launchers answer to --version.
var versions = []struct {
	pattern *regexp.Regexp
	dialect *dialect
}{
	{regexp.MustCompile(`\((?:Open MPI|OpenRTE)\) [1-4]\.`), &openMPI},
	{regexp.MustCompile(`\((?:Open MPI|PRRTE)\) [0-9]|PRRTE`), &prrte},
	{regexp.MustCompile(`HYDRA build details|Intel\(R\) MPI`), &hydra},
}

// dialectOf asks a launcher for its version.
func dialectOf(launcher string) (*dialect, error) {
	if filepath.Base(launcher) == Srun {
		return &slurm, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	answer, err := exec.CommandContext(ctx, launcher, "--version").CombinedOutput()
	for _, v := range versions {
		if v.pattern.Match(answer) {
			return v.dialect, nil
		}
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(answer)), "\n")
	return nil, fault.New(fault.Usage, "launch", "", "--launcher=%s, whose answer to --version is not known: %q (%v)", launcher, line, err).
		Then("use the mpirun of Open MPI or the mpiexec of MPICH, or srun")
}

// others are launchers with names of their own, beside mpirun.
var others = []string{"mpirun.openmpi", "prterun", "orterun", "mpiexec.hydra", "mpirun.mpich"}

// choose sets the launcher and its dialect. In place of an mpirun of another MPI than that of this program
// it chooses a launcher of this MPI, if one is on the PATH. An mpirun whose answer is not known, such as a
// wrapper of a site, is taken for that of this program's MPI.
func (o *Options) choose() error {
	library := mpi.Library()
	wanted := func(d *dialect) bool {
		return library == "" || d == &slurm || (d.name == openMPI.name) == strings.HasPrefix(library, openMPI.name)
	}
	d, err := dialectOf(o.Launcher)
	if err != nil && o.Launcher == Mpirun {
		d, err = &openMPI, nil
		if !wanted(d) {
			d = &hydra
		}
	}
	for _, name := range others {
		if err != nil || wanted(d) || o.Launcher != Mpirun {
			break
		}
		if _, err := exec.LookPath(name); err != nil {
			continue
		}
		if other, err := dialectOf(name); err == nil && wanted(other) {
			o.Launcher, d = name, other
		}
	}
	switch {
	case err != nil:
		return err
	case !wanted(d):
		return fault.New(fault.Config, "launch", o.Launcher, "it starts ranks of %s, and siafu is built for %s", d.name, library).
			Then("install the launcher of %s, or build siafu for this one: make build MPICC=ITS-MPICC", library)
	case o.Survive && !d.survives:
		return fault.New(fault.Config, "launch", o.Launcher, "--survive under the launcher of %s, which ends all ranks when one ends",
			d.name).Then("build siafu for Open MPI, and use its mpirun")
	}
	o.dialect = d
	return nil
}

// hydra returns the command line of Hydra. Ranks have threads and use all processors of their host.
func (o *Options) hydra(p place) []string {
	line := []string{o.Launcher, "-bind-to", "none"}
	if o.Ranks > 0 {
		line = append(line, "-n", strconv.Itoa(o.Ranks))
	}
	if o.Hostfile != "" {
		line = append(line, "-f", filepath.Join(p.sessions, hydraHosts))
	}
	if o.agent != "" {
		line = append(line, "-launcher", "rsh", "-launcher-exec", o.agent)
	}
	return line
}

// hydraHosts is the name of a hostfile in Hydra's form.
const hydraHosts = "hosts"

// slots matches the number of slots on a line of a hostfile of Open MPI.
var slots = regexp.MustCompile(`[ \t]+(?:slots|max_slots|max-slots)[ \t]*=[ \t]*`)

// translate writes the hostfile in Hydra's form, "HOST:SLOTS", into the folder of the session.
func (o *Options) translate(folder string) error {
	if o.Hostfile == "" || o.dialect != &hydra {
		return nil
	}
	text, err := os.ReadFile(o.Hostfile)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, hydraHosts), slots.ReplaceAll(text, []byte(":")), 0o600)
	}
	if err != nil {
		return fault.System("launch", o.Hostfile, err)
	}
	return nil
}
