package deploy

import (
	"regexp"
	"strings"
	"time"

	"siafu/graph/fault"
)

// Target is the function that a command is about, in the region of the SDK's chain.
type Target struct {
	Name string `default:"siafu" help:"Name of the function, as --lambda-function of train has it."`
}

// Options are the desired settings of a function.
type Options struct {
	Target
	Arch           string        `default:"amd64" enum:"amd64,arm64" help:"Architecture: amd64, or arm64, which costs a fifth less and has plain Go kernels."`
	File           string        `placeholder:"PATH" help:"Executable of the function. Empty: the one that make function built for the architecture, or that was installed with siafu."`
	Memory         int           `default:"1769" help:"Memory in MB, 128 to 10240. Processors come with it: one for each 1769 MB."`
	Timeout        time.Duration `default:"60s" help:"How long an invocation may take, 1s to 15m."`
	Role           string        `placeholder:"ARN" help:"Role that the function runs as. Empty: the one that it has; a function that is new needs this or --create-role."`
	CreateRole     bool          `help:"Make a role for the function, siafu-REGION-NAME, which may write logs, and use a VPC where the function is in one."`
	Subnets        []string      `placeholder:"ID" help:"Subnets of a VPC that the function is to be in, separated by commas. Empty: in none."`
	SecurityGroups []string      `placeholder:"ID" help:"Security groups of the function in its VPC, separated by commas."`
	Concurrency    int           `default:"0" help:"Invocations at a time that are reserved for the function, which is also the most that it gets. 0: none are."`
	DryRun         bool          `help:"Look, print the calls that would change something, and make none of them."`
	Keep           bool          `help:"Where a deployment fails half-way, leave what it has made."`
}

// StatusOptions say what is looked at.
type StatusOptions struct {
	Target
	File string `placeholder:"PATH" help:"Executable to compare the function's code with. Empty: what deploy would take."`
}

// RemoveOptions say what is removed.
type RemoveOptions struct {
	Target
	DryRun bool `help:"Look, print the calls that would change something, and make none of them."`
}

// Bounds of the service, and the forms of what it takes.
const (
	leastMemory     = 128
	mostMemory      = 10240
	mostTimeout     = 15 * time.Minute
	mostRoleName    = 64
	mostConcurrency = 1_000_000 // more than any account has
)

var (
	functionNames = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	roleNames     = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/[!-~]+$`)
	subnetIDs     = regexp.MustCompile(`^subnet-[0-9a-f]+$`)
	groupIDs      = regexp.MustCompile(`^sg-[0-9a-f]+$`)
)

// refuse is a fault of kind Usage about a flag.
func refuse(remedy, format string, args ...any) error {
	return fault.New(fault.Usage, "lambda", "", format, args...).Then("%s", remedy)
}

func (t Target) check() error {
	if !functionNames.MatchString(t.Name) {
		return refuse("use 1 to 64 letters, digits, - and _, and no ARN", "--name=%q", t.Name)
	}
	return nil
}

// check refuses what no function can be.
func (o Options) check() error {
	if err := o.Target.check(); err != nil {
		return err
	}
	switch {
	case o.Memory < leastMemory || o.Memory > mostMemory:
		return refuse("set 128 to 10240 MB", "--memory=%d", o.Memory)
	case o.Timeout < time.Second || o.Timeout > mostTimeout || o.Timeout%time.Second != 0:
		return refuse("set whole seconds from 1s to 15m", "--timeout=%s", o.Timeout)
	case o.Concurrency < 0 || o.Concurrency > mostConcurrency:
		return refuse("set 0 for none, or a number within the account's quota", "--concurrency=%d", o.Concurrency)
	case o.Role != "" && o.CreateRole:
		return refuse("give one of them", "--role=%s and --create-role", o.Role)
	case o.Role != "" && !roleNames.MatchString(o.Role):
		return refuse("give an ARN, such as arn:aws:iam::123456789012:role/NAME", "--role=%q", o.Role)
	case (len(o.Subnets) == 0) != (len(o.SecurityGroups) == 0):
		return refuse("give at least one of each for a function in a VPC", "%d --subnets and %d --security-groups", len(o.Subnets), len(o.SecurityGroups))
	}
	if err := checkIDs("--subnets", "subnet-0123abcd", subnetIDs, o.Subnets); err != nil {
		return err
	}
	return checkIDs("--security-groups", "sg-0123abcd", groupIDs, o.SecurityGroups)
}

func checkIDs(flag, example string, form *regexp.Regexp, ids []string) error {
	for _, id := range ids {
		if !form.MatchString(id) {
			return refuse("give a list such as "+example, "%s: %q", flag, id)
		}
	}
	return nil
}

// roleName is that of the role that is made for a function. Roles belong to all regions
// of an account, and functions to one.
func roleName(region, function string) (string, error) {
	name := "siafu-" + region + "-" + function
	if len(name) > mostRoleName {
		return "", refuse("use a shorter --name, or give the --role", "a role's name has at most %d characters, and %s has %d", mostRoleName, name, len(name))
	}
	return name, nil
}

// partition is the part of AWS that a region belongs to, as ARNs name it.
func partition(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}
