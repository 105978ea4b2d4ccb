package ranks

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"siafu/internal/fault"
	"siafu/ranks/runfolder"
)

// LeaveOptions has the flags of "siafu leave".
type LeaveOptions struct {
	Run   string   `arg:"" help:"Run folder."`
	Hosts []string `name:"host" required:"" placeholder:"HOST" help:"Host whose ranks leave, as in the log; repeatable."`
}

// Leave requests that the ranks of hosts leave a run (--survive): after the current epoch, their parts
// move to other ranks.
func Leave(o LeaveOptions, out io.Writer) error {
	if err := checkHosts(o); err != nil {
		return err
	}
	if err := runfolder.Leave(o.Run, o.Hosts); err != nil {
		return err
	}
	_, err := io.WriteString(out, "the ranks of "+strings.Join(o.Hosts, ", ")+" leave after the current epoch\n")
	return err
}

// checkHosts returns a fault if no rank of an active run is on one of the hosts.
func checkHosts(o LeaveOptions) error {
	var inv invitation
	if err := runfolder.ReadInvitation("leave", o.Run, &inv); err != nil {
		return err
	}
	hosts := inv.Contacts.LiveHosts()
	for _, h := range o.Hosts {
		if !slices.Contains(hosts, h) {
			return fault.New(fault.Usage, "leave", o.Run, "no rank is on host %q", h).
				Then("name one of its hosts: %s", strings.Join(hosts, ", "))
		}
	}
	return nil
}

// departure watches for requests that the ranks of this host leave.
type departure struct {
	host   string
	older  int // bytes of requests that are older than this rank
	left   atomic.Bool
	byHost atomic.Bool // siafu leave names the host; --survive notice=COMMAND is that of one rank
	cancel context.CancelFunc

	mu     sync.Mutex
	looked time.Time
}

// Intervals of checks.
const (
	lookEvery   = 200 * time.Millisecond // of the run folder
	noticeEvery = 2 * time.Second        // of --survive notice=COMMAND
)

// watchDeparture begins to run the command of --survive notice=COMMAND. A command that cannot run is reported once.
func watchDeparture(c *Config, host string, out IO) *departure {
	ctx, cancel := context.WithCancel(context.Background())
	d := &departure{host: host, cancel: cancel}
	if c.Notice != "" {
		go d.run(ctx, c.Notice, out)
	}
	return d
}

func (d *departure) run(ctx context.Context, command string, out IO) {
	warned := false
	for ctx.Err() == nil {
		err := exec.CommandContext(ctx, "sh", "-c", command).Run()
		if err == nil {
			d.left.Store(true)
			return
		}
		if code, isExit := err.(*exec.ExitError); ctx.Err() == nil && !warned && (!isExit || code.ExitCode() == 127) {
			warned = true
			warn(out, "--survive notice=COMMAND: %s: %v on %s", command, err, d.host)
		}
		select {
		case <-ctx.Done():
		case <-time.After(noticeEvery):
		}
	}
}

// requested reports whether the ranks of this host must leave the run in a folder.
func (d *departure) requested(run string) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.left.Load() && time.Since(d.looked) >= lookEvery {
		d.looked = time.Now()
		if runfolder.Leaves(run, d.host, d.older) { // else notice may arrive meanwhile
			d.byHost.Store(true)
			d.left.Store(true)
		}
	}
	return d.left.Load()
}

// ofHost reports whether all ranks of this host must leave.
func (d *departure) ofHost() bool { return d != nil && d.byHost.Load() }

func (d *departure) close() {
	if d != nil {
		d.cancel()
	}
}

// readZones reads a file of lines "HOST ZONE", and returns the zone of a host. It fails if one of the given
// hosts has no line. Without a file, each host is a zone.
func readZones(path string, hosts []string) (func(host string) string, error) {
	if path == "" {
		return func(host string) string { return host }, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.System("zones", path, err)
	}
	defer f.Close()
	zone := map[string]string{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 {
			return nil, fault.New(fault.Data, "zones", path, "line %d: %q", n, lines.Text()).Then("it must have a host and a zone")
		}
		zone[fields[0]] = fields[1]
	}
	if err := lines.Err(); err != nil {
		return nil, fault.System("zones", path, err)
	}
	for _, h := range hosts {
		if _, ok := zone[h]; !ok {
			return nil, fault.New(fault.Data, "zones", path, "host %q has no line", h).Then("name the zone of each host")
		}
	}
	return func(host string) string { return zone[host] }, nil
}
