//go:build lambda

package deploy

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"siafu/graph/fault"
	"siafu/lambda/deploy/deploytest"
)

const region = "eu-central-1"

// ours is the role that is made for the function.
const ours = "siafu-eu-central-1-f"

// executableOf writes a file that is an executable of an architecture by its header.
func executableOf(t *testing.T, arch, rest string) string {
	t.Helper()
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(machines[arch]), Version: uint32(elf.EV_CURRENT), Ehsize: 64}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, h); err != nil {
		t.Fatal(err)
	}
	b.WriteString(rest)
	path := filepath.Join(t.TempDir(), "bootstrap")
	if err := os.WriteFile(path, b.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// options are those of a function that is of no particular kind.
func options(t *testing.T) Options {
	return Options{Target: Target{"f"}, Arch: "amd64", File: executableOf(t, "amd64", "one"), Memory: 512, Timeout: time.Minute, CreateRole: true}
}

// client is a genuine client of an account, which waits as shortly as it can.
func client(f *deploytest.Fake, out *bytes.Buffer, dry bool) *control {
	c := newControl(aws.Config{
		BaseEndpoint: &f.URL, Region: region, Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""),
		Retryer: func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
		},
	}, out, dry)
	c.waits = waits{step: time.Millisecond, ready: 10 * time.Second, role: 10 * time.Second, undo: 10 * time.Second}
	return c
}

// result is what a command has come to: its error, what it printed and called.
type result struct {
	err   error
	out   string
	calls []string
}

// changing are the calls that change something.
func (r result) changing() []string {
	return slices.DeleteFunc(slices.Clone(r.calls), func(c string) bool {
		_, operation, _ := strings.Cut(c, ":")
		return strings.HasPrefix(operation, "Get") || strings.HasPrefix(operation, "List")
	})
}

// command runs one command of the account.
func command(f *deploytest.Fake, dry bool, do func(*control) error) result {
	var out bytes.Buffer
	err := do(client(f, &out, dry))
	return result{err, out.String(), f.Taken()}
}

func deployed(ctx context.Context, t *testing.T, f *deploytest.Fake, o Options) result {
	t.Helper()
	packed, err := Pack(o.File, o.Arch)
	if err != nil {
		t.Fatal(err)
	}
	return command(f, o.DryRun, func(c *control) error { return c.deploy(ctx, o, packed) })
}

func removed(t *testing.T, f *deploytest.Fake, dry bool) result {
	return command(f, dry, func(c *control) error { return c.remove(t.Context(), "f") })
}

// expect compares the calls of a command that must end well.
func expect(t *testing.T, r result, calls ...string) {
	t.Helper()
	if r.err != nil {
		t.Fatalf("%v\n%s", r.err, r.out)
	}
	if d := cmp.Diff(calls, r.calls); d != "" {
		t.Fatalf("calls (-want +got):\n%s\n%s", d, r.out)
	}
}

// A first deployment makes a role and the function and waits for both; a second one
// looks and changes nothing.
func TestDeployTwice(t *testing.T) {
	f := deploytest.New(t)
	f.Spread, f.Looks = 2, 2
	o := options(t)
	o.Concurrency = 10
	expect(t, deployed(t.Context(), t, f, o),
		"lambda:GetFunction", "iam:GetRole", "iam:CreateRole", "iam:AttachRolePolicy",
		"lambda:CreateFunction", "lambda:CreateFunction", "lambda:CreateFunction", // until the role is known
		"lambda:GetFunction", "lambda:GetFunction", "lambda:GetFunction", // Pending twice, then Active
		"lambda:GetFunction", "lambda:PutFunctionConcurrency")
	fn, role := f.Functions["f"], f.Roles[ours]
	if fn == nil || role == nil {
		t.Fatal("there is no function, or no role")
	}
	want := deploytest.Config{
		FunctionName: "f", FunctionArn: fn.FunctionArn, Runtime: "provided.al2023", Handler: "bootstrap", Role: deploytest.ARN(ours),
		Description: "tensor tasks of siafu", Architectures: []string{"x86_64"}, MemorySize: 512, Timeout: 60, PackageType: "Zip",
		CodeSize: fn.CodeSize, CodeSha256: fn.CodeSha256, LastModified: fn.LastModified, Version: "$LATEST", State: "Active", LastUpdateStatus: "Successful",
	}
	if d := cmp.Diff(want, fn.Config); d != "" {
		t.Errorf("the function (-want +got):\n%s", d)
	}
	if fn.Tags[tag] != "f" || role.Tags[tag] != "f" || *fn.Reserved != 10 {
		t.Errorf("tags %v and %v, concurrency %d", fn.Tags, role.Tags, *fn.Reserved)
	}
	if d := cmp.Diff([]string{"arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"}, role.Policies); d != "" {
		t.Error(d)
	}
	again := deployed(t.Context(), t, f, o)
	expect(t, again, "lambda:GetFunction", "iam:GetRole", "iam:ListAttachedRolePolicies")
	for _, text := range []string{"nothing to change", "changes=0", "costs nothing to leave there", "siafu lambda remove --name f"} {
		if !strings.Contains(again.out, text) {
			t.Errorf("it does not say %q:\n%s", text, again.out)
		}
	}
}

// What differs is changed, and nothing else; then nothing differs any more. A dry run
// before it prints these calls and makes none.
func TestUpdates(t *testing.T) {
	configuration, code := "lambda:UpdateFunctionConfiguration", "lambda:UpdateFunctionCode"
	vpc := func(o *Options) { o.Subnets, o.SecurityGroups = []string{"subnet-2", "subnet-1"}, []string{"sg-1"} }
	for _, c := range []struct {
		name   string
		first  func(*Options)
		change func(*testing.T, *Options)
		calls  []string
	}{
		{"code", nil, func(t *testing.T, o *Options) { o.File = executableOf(t, "amd64", "two") }, []string{code}},
		{"architecture", nil, func(t *testing.T, o *Options) { o.Arch, o.File = "arm64", executableOf(t, "arm64", "one") }, []string{code}},
		{"memory", nil, func(_ *testing.T, o *Options) { o.Memory = 1024 }, []string{configuration}},
		{"timeout", nil, func(_ *testing.T, o *Options) { o.Timeout = 2 * time.Minute }, []string{configuration}},
		{"memory and code", nil, func(t *testing.T, o *Options) { o.Memory, o.File = 1024, executableOf(t, "amd64", "two") }, []string{configuration, code}},
		{"role", nil, func(_ *testing.T, o *Options) { o.CreateRole, o.Role = false, deploytest.ARN("mine") }, []string{configuration}},
		{"role kept", nil, func(_ *testing.T, o *Options) { o.CreateRole = false }, nil},
		{"into a VPC", nil, func(_ *testing.T, o *Options) { vpc(o) }, []string{"iam:AttachRolePolicy", configuration}},
		{"same VPC", vpc, func(_ *testing.T, o *Options) { slices.Reverse(o.Subnets) }, nil},
		{"out of a VPC", vpc, func(_ *testing.T, o *Options) { o.Subnets, o.SecurityGroups = nil, nil }, []string{configuration}},
		{"concurrency", nil, func(_ *testing.T, o *Options) { o.Concurrency = 5 }, []string{"lambda:PutFunctionConcurrency"}},
		{"no concurrency", func(o *Options) { o.Concurrency = 5 }, func(_ *testing.T, o *Options) { o.Concurrency = 0 }, []string{"lambda:DeleteFunctionConcurrency"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := deploytest.New(t)
			f.Roles["mine"] = &deploytest.Role{}
			o := options(t)
			if c.first != nil {
				c.first(&o)
			}
			if r := deployed(t.Context(), t, f, o); r.err != nil {
				t.Fatal(r.err)
			}
			c.change(t, &o)
			dry := o
			dry.DryRun = true
			r := deployed(t.Context(), t, f, dry)
			if d := cmp.Diff(c.calls, printed(r), cmpopts.EquateEmpty()); r.err != nil || len(r.changing()) > 0 || d != "" {
				t.Errorf("a dry run: %v, calls %v, printed (-want +got):\n%s", r.err, r.changing(), d)
			}
			r = deployed(t.Context(), t, f, o)
			if d := cmp.Diff(c.calls, r.changing(), cmpopts.EquateEmpty()); r.err != nil || d != "" {
				t.Errorf("%v, calls (-want +got):\n%s", r.err, d)
			}
			if r := deployed(t.Context(), t, f, o); r.err != nil || len(r.changing()) > 0 {
				t.Errorf("once more: %v %v", r.err, r.changing())
			}
			if fn := f.Functions["f"]; fn.MemorySize != o.Memory || (fn.VpcConfig != nil && len(fn.VpcConfig.SubnetIds) != len(o.Subnets)) {
				t.Errorf("the function is %+v", fn.Config)
			}
		})
	}
}

// printed are the calls that a dry run prints.
func printed(r result) []string {
	var list []string
	for line := range strings.Lines(r.out) {
		if rest, ok := strings.CutPrefix(line, "lambda would call "); ok {
			action, _, _ := strings.Cut(rest, " ")
			list = append(list, action)
		}
	}
	return list
}

// A dry run prints the calls that a deployment and a removal then make, with their
// parameters, and changes nothing.
func TestDryRun(t *testing.T) {
	f := deploytest.New(t)
	o := options(t)
	o.Concurrency, o.DryRun = 3, true
	o.Subnets, o.SecurityGroups = []string{"subnet-1"}, []string{"sg-1"}
	dry := deployed(t.Context(), t, f, o)
	if dry.err != nil || len(dry.changing()) > 0 || len(f.Functions)+len(f.Roles) > 0 {
		t.Fatalf("%v %v", dry.err, dry.changing())
	}
	for _, text := range []string{
		`lambda would call lambda:CreateFunction {"Architectures":["x86_64"],"Code":{"ZipFile":"<`, `"Role":"arn:aws:iam::ACCOUNT:role/siafu-eu-central-1-f"`,
		`"Tags":{"siafu":"f"}`, `"VpcConfig":{"SecurityGroupIds":["sg-1"],"SubnetIds":["subnet-1"]}`, "nothing was changed",
	} {
		if !strings.Contains(dry.out, text) {
			t.Errorf("it does not print %s:\n%s", text, dry.out)
		}
	}
	o.DryRun = false
	r := deployed(t.Context(), t, f, o)
	if d := cmp.Diff(printed(dry), r.changing()); r.err != nil || d != "" {
		t.Errorf("%v, calls (-printed +made):\n%s", r.err, d)
	}
	f.Roles[ours].Policies = f.Roles[ours].Policies[:1] // the role of a VPC would stay
	dry = removed(t, f, true)
	if dry.err != nil || len(dry.changing()) > 0 || strings.Contains(dry.out, "secret") {
		t.Fatalf("%v %v %s", dry.err, dry.changing(), dry.out)
	}
	r = removed(t, f, false)
	if d := cmp.Diff(printed(dry), r.changing()); r.err != nil || d != "" || len(f.Functions)+len(f.Roles) > 0 {
		t.Errorf("%v, calls (-printed +made):\n%s", r.err, d)
	}
}

// A deployment that fails half-way removes what it has made, unless told to keep it.
func TestFailedDeployment(t *testing.T) {
	fails := func(action string, r *deploytest.Refusal) func(*deploytest.Fake) {
		return func(f *deploytest.Fake) {
			f.Refuse = func(a string, _ int) *deploytest.Refusal {
				if a == action {
					return r
				}
				return nil
			}
		}
	}
	quota := &deploytest.Refusal{Status: http.StatusBadRequest, Code: "InvalidParameterValueException", Message: "Specified ReservedConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below its minimum value of [10]."}
	undoRole := []string{"iam:DetachRolePolicy", "iam:DeleteRole"}
	for _, c := range []struct {
		name  string
		fails func(*deploytest.Fake)
		says  string
		undo  []string
	}{
		{"the function is not made", fails("lambda:CreateFunction", deploytest.Denied("iam:PassRole")), "allow iam:PassRole", undoRole},
		{"a policy is not attached", fails("iam:AttachRolePolicy", deploytest.Denied("iam:AttachRolePolicy")), "allow iam:AttachRolePolicy", []string{"iam:DeleteRole"}},
		{"the role is not made", fails("iam:CreateRole", deploytest.Denied("iam:CreateRole")), "allow iam:CreateRole", nil},
		{"the service fails", fails("lambda:CreateFunction", deploytest.Broken()), "run it again later", undoRole},
		{"the function fails", func(f *deploytest.Fake) { f.Fail = "no addresses are left" }, "no addresses are left", append([]string{"lambda:DeleteFunction"}, undoRole...)},
		{"the quota is used up", fails("lambda:PutFunctionConcurrency", quota), "a quota", append([]string{"lambda:DeleteFunction"}, undoRole...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := deploytest.New(t)
			c.fails(f)
			o := options(t)
			o.Concurrency = 5
			r := deployed(t.Context(), t, f, o)
			if r.err == nil || !strings.Contains(r.err.Error(), c.says) || len(f.Functions)+len(f.Roles) > 0 {
				t.Errorf("%v\n%s, %d functions and %d roles are left", r.err, r.out, len(f.Functions), len(f.Roles))
			}
			made := r.changing()
			if d := cmp.Diff(c.undo, made[len(made)-len(c.undo):]); d != "" && len(c.undo) > 0 {
				t.Errorf("the last calls (-want +got):\n%s", d)
			}
			if said := strings.Contains(r.out, "removes what it has made"); said != (len(c.undo) > 0) {
				t.Errorf("it says:\n%s", r.out)
			}
			f.Taken()
			o.Keep = true
			r = deployed(t.Context(), t, f, o)
			if r.err == nil || slices.ContainsFunc(r.calls, func(c string) bool { return strings.Contains(c, ":De") }) {
				t.Errorf("--keep: %v %v", r.err, r.calls)
			}
		})
	}
}

// A function that does not come up in time is removed. One in a VPC leaves its role,
// whose rights take its network interfaces down, and says so; remove then takes it.
func TestNeverReady(t *testing.T) {
	f := deploytest.New(t)
	f.Looks = 1 << 30
	o := options(t)
	o.Subnets, o.SecurityGroups = []string{"subnet-1"}, []string{"sg-1"}
	packed, err := Pack(o.File, o.Arch)
	if err != nil {
		t.Fatal(err)
	}
	r := command(f, false, func(c *control) error {
		c.waits.ready = 20 * time.Millisecond
		return c.deploy(t.Context(), o, packed)
	})
	if r.err == nil || !strings.Contains(r.err.Error(), "state Pending") || len(f.Functions) > 0 || f.Roles[ours] == nil || !strings.Contains(r.out, "within 20 minutes") {
		t.Fatalf("%v\n%s", r.err, r.out)
	}
	expect(t, removed(t, f, false), "lambda:GetFunction", "iam:GetRole", "iam:ListAttachedRolePolicies", "iam:DetachRolePolicy", "iam:DetachRolePolicy", "iam:DeleteRole")
}

// A deployment that fails after it has changed a function that was there takes nothing
// back from it, not even a new role.
func TestFailedUpdate(t *testing.T) {
	f := deploytest.New(t)
	f.Roles["mine"] = &deploytest.Role{}
	o := options(t)
	o.CreateRole, o.Role = false, deploytest.ARN("mine")
	if r := deployed(t.Context(), t, f, o); r.err != nil {
		t.Fatal(r.err)
	}
	f.Refuse = func(action string, _ int) *deploytest.Refusal {
		if action == "lambda:UpdateFunctionCode" {
			return deploytest.Denied(action)
		}
		return nil
	}
	o.CreateRole, o.Role, o.File = true, "", executableOf(t, "amd64", "two")
	r := deployed(t.Context(), t, f, o)
	if r.err == nil || f.Roles[ours] == nil || f.Functions["f"].Role != deploytest.ARN(ours) || !strings.Contains(r.out, "deploy again to finish") {
		t.Errorf("%v\n%s", r.err, r.out)
	}
	o.CreateRole = false
	if r := deployed(t.Context(), t, f, o); r.err == nil || strings.Contains(r.out, "have changed") {
		t.Errorf("nothing was changed: %v\n%s", r.err, r.out)
	}
	f.Refuse = nil
	if r := deployed(t.Context(), t, f, o); r.err != nil || !cmp.Equal(r.changing(), []string{"lambda:UpdateFunctionCode"}) {
		t.Errorf("%v %v", r.err, r.changing())
	}
}

// An interrupt ends a deployment, and what it had made is removed all the same.
func TestInterrupted(t *testing.T) {
	for _, at := range []string{"iam:CreateRole", "iam:AttachRolePolicy", "lambda:CreateFunction", "lambda:PutFunctionConcurrency"} {
		t.Run(at, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			f := deploytest.New(t)
			f.After = func(action string) {
				if action == at {
					cancel()
				}
			}
			o := options(t)
			o.Concurrency = 5
			r := deployed(ctx, t, f, o)
			if at == "lambda:PutFunctionConcurrency" && r.err == nil {
				return // the answer was faster
			}
			if fault.ExitCode(r.err) != 75 || len(f.Functions)+len(f.Roles) > 0 {
				t.Errorf("exit %d, %v; %d functions and %d roles are left\n%s", fault.ExitCode(r.err), r.err, len(f.Functions), len(f.Roles), r.out)
			}
		})
	}
}

// A call whose answer is lost is made again by the SDK, and what it had made is found.
func TestLostAnswer(t *testing.T) {
	f := deploytest.New(t)
	lost := false
	f.After = func(action string) {
		if action == "lambda:CreateFunction" && !lost {
			lost = true
			panic(http.ErrAbortHandler)
		}
	}
	r := deployed(t.Context(), t, f, options(t))
	if r.err != nil || !lost || f.Functions["f"].State != "Active" {
		t.Errorf("%v\n%s", r.err, r.out)
	}
}

// A function that AWS is still about to make, or has put aside, is waited for and not
// waited for; one that has failed is refused.
func TestStates(t *testing.T) {
	for _, c := range []struct {
		state, update string
		memory        int
		says          string
	}{
		{"Pending", "Successful", 256, ""}, {"Active", "InProgress", 256, ""}, {"Inactive", "Successful", 256, ""},
		{"Active", "Failed", 512, ""}, // and what it tells of itself is not so
		{"Failed", "Successful", 512, "siafu lambda remove --name f"},
	} {
		f := deploytest.New(t)
		o := options(t)
		if r := deployed(t.Context(), t, f, o); r.err != nil {
			t.Fatal(r.err)
		}
		f.Functions["f"].State = c.state
		f.Functions["f"].LastUpdateStatus = c.update
		o.Memory = c.memory
		r := deployed(t.Context(), t, f, o)
		if c.says == "" && (r.err != nil || len(r.changing()) == 0 || f.Functions["f"].MemorySize != c.memory || f.Functions["f"].LastUpdateStatus != "Successful") || c.says != "" && (r.err == nil || !strings.Contains(r.err.Error(), c.says)) {
			t.Errorf("%s: %v", c.state, r.err)
		}
	}
}

// Remove deletes what siafu has made, once; logs are named as what is left.
func TestRemove(t *testing.T) {
	f := deploytest.New(t)
	if r := deployed(t.Context(), t, f, options(t)); r.err != nil {
		t.Fatal(r.err)
	}
	r := removed(t, f, false)
	expect(t, r, "lambda:GetFunction", "lambda:DeleteFunction", "iam:GetRole", "iam:ListAttachedRolePolicies", "iam:DetachRolePolicy", "iam:DeleteRole")
	if len(f.Functions)+len(f.Roles) > 0 || !strings.Contains(r.out, "--log-group-name /aws/lambda/f") {
		t.Error(r.out)
	}
	expect(t, removed(t, f, false), "lambda:GetFunction", "iam:GetRole")
}

// The role of a function in a VPC outlives it for one call of remove.
func TestRemoveFromVPC(t *testing.T) {
	f := deploytest.New(t)
	o := options(t)
	o.Subnets, o.SecurityGroups = []string{"subnet-1"}, []string{"sg-1"}
	if r := deployed(t.Context(), t, f, o); r.err != nil {
		t.Fatal(r.err)
	}
	if r := removed(t, f, false); fault.ExitCode(r.err) != 75 || !strings.Contains(r.err.Error(), "20 minutes") || f.Roles[ours] == nil || len(f.Functions) > 0 {
		t.Errorf("%v", r.err)
	}
	if r := removed(t, f, false); r.err != nil || len(f.Roles) > 0 {
		t.Errorf("%v", r.err)
	}
}

// What siafu has not made it neither changes nor deletes.
func TestStrangers(t *testing.T) {
	f := deploytest.New(t)
	f.Functions["f"] = &deploytest.Function{Config: deploytest.Config{FunctionName: "f", State: "Active", LastUpdateStatus: "Successful"}, Tags: map[string]string{"siafu": "g"}}
	f.Roles[ours] = &deploytest.Role{Tags: map[string]string{"owner": "me"}}
	for name, r := range map[string]result{"deploy": deployed(t.Context(), t, f, options(t)), "remove": removed(t, f, false)} {
		if fault.ExitCode(r.err) != 78 || !strings.Contains(r.err.Error(), "is not siafu's: it lacks the tag siafu=f") || len(r.changing()) > 0 {
			t.Errorf("%s: %v %v", name, r.err, r.calls)
		}
	}
	delete(f.Functions, "f")
	if r := deployed(t.Context(), t, f, options(t)); fault.ExitCode(r.err) != 78 || !strings.Contains(r.err.Error(), "the role "+ours) || len(r.changing()) > 0 {
		t.Errorf("the role: %v %v", r.err, r.calls)
	}
	if r := removed(t, f, false); r.err != nil || f.Roles[ours] == nil || !strings.Contains(r.out, "lacks siafu's tag") {
		t.Errorf("the role: %v\n%s", r.err, r.out)
	}
}

// Calls that are throttled are made again by the SDK, up to a bound.
func TestThrottling(t *testing.T) {
	f := deploytest.New(t)
	f.Refuse = func(action string, n int) *deploytest.Refusal {
		if n <= 2 && action == "lambda:CreateFunction" || n <= 1 && action == "iam:GetRole" {
			return deploytest.Throttled()
		}
		return nil
	}
	if r := deployed(t.Context(), t, f, options(t)); r.err != nil || f.Functions["f"] == nil {
		t.Errorf("%v %v", r.err, r.calls)
	}
	f.Refuse = func(string, int) *deploytest.Refusal { return deploytest.Throttled() }
	r := removed(t, f, false)
	if r.err == nil || !strings.Contains(r.err.Error(), "AWS throttles") {
		t.Error(r.err)
	}
	if d := cmp.Diff(slices.Repeat([]string{"lambda:GetFunction"}, retry.DefaultMaxAttempts), r.calls); d != "" {
		t.Error(d)
	}
}

// Errors of AWS are told with what to do about them.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		status        int
		code, message string
		exit          int
		says          string
	}{
		{403, "AccessDeniedException", "no", 78, "allow lambda:GetFunction"},
		{403, "AccessDeniedException", "User: u is not authorized to perform: lambda:ListTags on resource: r", 78, "allow lambda:ListTags"},
		{403, "UnrecognizedClientException", "The security token included in the request is invalid.", 78, "renew them"},
		{403, "ExpiredTokenException", "expired", 78, "renew them"},
		{400, "CodeStorageExceededException", "full", 78, "a quota"},
		{400, "InvalidParameterValueException", "'MemorySize' value failed to satisfy constraint: Member must have value less than or equal to 3008", 78, "at most 3008 MB"},
		{400, "InvalidParameterValueException", "The subnet ID 'subnet-1' does not exist", 78, "correct the flag"},
		{409, "ResourceConflictException", "The operation cannot be performed at this time.", 1, "run it again"},
		{500, "ServiceException", "oh", 1, "AWS has failed"},
	} {
		f := deploytest.New(t)
		f.Refuse = func(string, int) *deploytest.Refusal {
			return &deploytest.Refusal{Status: c.status, Code: c.code, Message: c.message}
		}
		r := removed(t, f, false)
		if fault.ExitCode(r.err) != c.exit || !strings.Contains(r.err.Error(), c.says) || !strings.Contains(r.err.Error(), c.message) {
			t.Errorf("%s %q: exit %d, %v", c.code, c.message, fault.ExitCode(r.err), r.err)
		}
	}
	f := deploytest.New(t)
	f.URL = "http://127.0.0.1:1"
	if r := removed(t, f, false); fault.ExitCode(r.err) != 74 || !strings.Contains(r.err.Error(), "check the network") {
		t.Errorf("no network: %v", r.err)
	}
}

// A new function needs to be told its role.
func TestNoRole(t *testing.T) {
	f := deploytest.New(t)
	o := options(t)
	o.CreateRole = false
	if r := deployed(t.Context(), t, f, o); fault.ExitCode(r.err) != 64 || !strings.Contains(r.err.Error(), "--create-role") || len(r.changing()) > 0 {
		t.Error(r.err)
	}
}

// Who has no rights of IAM can be rid of a function whose role is somebody else's.
func TestRemoveWithoutIAM(t *testing.T) {
	f := deploytest.New(t)
	f.Roles["mine"] = &deploytest.Role{}
	o := options(t)
	o.CreateRole, o.Role = false, deploytest.ARN("mine")
	f.Refuse = func(action string, _ int) *deploytest.Refusal {
		if strings.HasPrefix(action, "iam:") {
			return deploytest.Denied(action)
		}
		return nil
	}
	if r := deployed(t.Context(), t, f, o); r.err != nil {
		t.Fatal(r.err)
	}
	if r := removed(t, f, false); r.err != nil || len(f.Functions) > 0 || !strings.Contains(r.out, "allow iam:GetRole") {
		t.Errorf("%v\n%s", r.err, r.out)
	}
}

// Status says what there is, and has an exit code where nothing is.
func TestStatus(t *testing.T) {
	f := deploytest.New(t)
	o := options(t)
	status := func(file string) result {
		return command(f, false, func(c *control) error { return c.status(t.Context(), StatusOptions{Target: o.Target, File: file}) })
	}
	if r := status(o.File); fault.ExitCode(r.err) != 66 || !strings.Contains(r.err.Error(), "no function f in "+region) {
		t.Errorf("nothing is there: %v", r.err)
	}
	o.Concurrency, o.Subnets, o.SecurityGroups = 7, []string{"subnet-1"}, []string{"sg-1"}
	if r := deployed(t.Context(), t, f, o); r.err != nil {
		t.Fatal(r.err)
	}
	for file, same := range map[string]string{o.File: "same=true", executableOf(t, "amd64", "two"): "same=false", executableOf(t, "arm64", "one"): "EM_AARCH64", "/nowhere": "not there"} {
		r := status(file)
		for _, text := range []string{"state=Active", "siafu=true", "arch=amd64", "memory_mb=512", "timeout=60s", "concurrency=7", "subnets=[subnet-1]", "role made by siafu: " + deploytest.ARN(ours), f.Functions["f"].CodeSha256, same} {
			if r.err != nil || !strings.Contains(r.out, text) {
				t.Errorf("%v, it does not say %q:\n%s", r.err, text, r.out)
			}
		}
		if len(r.changing()) > 0 {
			t.Error(r.calls)
		}
	}
}

// Without the right to see tags, nothing is known to be siafu's.
func TestTagsUnseen(t *testing.T) {
	there := &lambda.GetFunctionOutput{TagsError: &types.TagsError{ErrorCode: aws.String("AccessDeniedException"), Message: aws.String("no")}}
	if err := client(deploytest.New(t), new(bytes.Buffer), false).owned(there, "f"); fault.ExitCode(err) != 78 || !strings.Contains(err.Error(), "lambda:ListTags") {
		t.Error(err)
	}
}
