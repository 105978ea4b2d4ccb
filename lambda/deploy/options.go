package deploy

import (
	"regexp"
	"strings"
	"time"

	"siafu/internal/fault"
)

// Target selects the function of a command, in the region of the SDK's configuration.
type Target struct {
	Name string `default:"siafu" help:"Name of the function, as in train --lambda function=NAME."`
}

// Options are the desired settings of a function.
type Options struct {
	Target
	Arch           string        `default:"amd64" enum:"amd64,arm64" help:"Architecture: amd64 or arm64. arm64 costs a fifth less and has plain Go kernels."`
	File           string        `placeholder:"PATH" help:"Executable of the function. Empty: built by make function for the architecture, or installed with siafu."`
	Memory         int           `default:"1769" help:"Memory in MB, 128 to 10240. AWS assigns one processor for each 1769 MB."`
	Timeout        time.Duration `default:"60s" help:"Maximum duration of an invocation, 1s to 15m."`
	Role           string        `placeholder:"ARN" help:"IAM role of the function. Empty: its present role; a new function needs --role or --create-role."`
	CreateRole     bool          `help:"Create the IAM role siafu-REGION-NAME for the function. The role may write logs, and may use a VPC if the function is in one."`
	Subnets        []string      `placeholder:"ID" help:"VPC subnets of the function, separated by commas. Empty: no VPC."`
	SecurityGroups []string      `placeholder:"ID" help:"VPC security groups of the function, separated by commas."`
	Concurrency    int           `default:"0" help:"Reserved concurrency of the function, which is also its maximum. 0: none reserved."`
	DryRun         bool          `help:"Print the calls that would change something, without making them. Calls that only read are made."`
	Keep           bool          `help:"Retain created resources if the deployment fails."`
}

// StatusOptions are the options of Status.
type StatusOptions struct {
	Target
	File string `placeholder:"PATH" help:"Executable to compare with the function's code. Empty: the executable that deploy would use."`
}

// RemoveOptions are the options of Remove.
type RemoveOptions struct {
	Target
	DryRun bool `help:"Print the calls that would change something, without making them. Calls that only read are made."`
}

// Limits of the service.
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

// refuse returns a fault of kind Usage about a flag.
func refuse(remedy, format string, args ...any) error {
	return fault.New(fault.Usage, "lambda", "", format, args...).Then("%s", remedy)
}

func (t Target) check() error {
	if !functionNames.MatchString(t.Name) {
		return refuse("use 1 to 64 letters, digits, - and _, and no ARN", "--name=%q", t.Name)
	}
	return nil
}

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
		return refuse("give at least one of each for a function in a VPC", "%d --subnets and %d --security-groups",
			len(o.Subnets), len(o.SecurityGroups))
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

// roleName returns the name of the role that siafu creates for a function. It contains the region,
// because roles belong to all regions of an account and functions to one.
func roleName(region, function string) (string, error) {
	name := "siafu-" + region + "-" + function
	if len(name) > mostRoleName {
		return "", refuse("use a shorter --name, or give the --role", "a role's name has at most %d characters, and %s has %d",
			mostRoleName, name, len(name))
	}
	return name, nil
}

// partition returns the AWS partition of a region, as ARNs contain it.
func partition(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}
