package deploy

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"siafu/internal/fault"
	"siafu/internal/testkit/deploytest"
)

// A first deployment creates a role and the function and waits for both. A second one changes
// nothing.
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
		CodeSize: fn.CodeSize, CodeSha256: fn.CodeSha256, LastModified: fn.LastModified, Version: "$LATEST", State: "Active",
		LastUpdateStatus: "Successful",
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
	for _, text := range []string{"nothing to change", "changes=0", "an idle function costs only the storage",
		"siafu lambda remove --name f"} {
		if !strings.Contains(again.out, text) {
			t.Errorf("it does not say %q:\n%s", text, again.out)
		}
	}
}

// Only different settings are changed. Afterwards nothing differs. A preceding dry run prints
// these calls and makes none.
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
		{"memory and code", nil, func(t *testing.T, o *Options) { o.Memory, o.File = 1024, executableOf(t, "amd64", "two") },
			[]string{configuration, code}},
		{"role", nil, func(_ *testing.T, o *Options) { o.CreateRole, o.Role = false, deploytest.ARN("mine") }, []string{configuration}},
		{"role kept", nil, func(_ *testing.T, o *Options) { o.CreateRole = false }, nil},
		{"into a VPC", nil, func(_ *testing.T, o *Options) { vpc(o) }, []string{"iam:AttachRolePolicy", configuration}},
		{"same VPC", vpc, func(_ *testing.T, o *Options) { slices.Reverse(o.Subnets) }, nil},
		{"out of a VPC", vpc, func(_ *testing.T, o *Options) { o.Subnets, o.SecurityGroups = nil, nil }, []string{configuration}},
		{"concurrency", nil, func(_ *testing.T, o *Options) { o.Concurrency = 5 }, []string{"lambda:PutFunctionConcurrency"}},
		{"no concurrency", func(o *Options) { o.Concurrency = 5 }, func(_ *testing.T, o *Options) { o.Concurrency = 0 },
			[]string{"lambda:DeleteFunctionConcurrency"}},
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

// A dry run prints the calls of a deployment and of a removal, with their parameters, and
// changes nothing.
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
		`lambda would call lambda:CreateFunction {"Architectures":["x86_64"],"Code":{"ZipFile":"<`,
		`"Role":"arn:aws:iam::ACCOUNT:role/siafu-eu-central-1-f"`,
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

// Deploy waits for a pending function, does not wait for an inactive one, and rejects a failed
// one.
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
		if c.says == "" && (r.err != nil || len(r.changing()) == 0 || f.Functions["f"].MemorySize != c.memory || f.Functions["f"].
			LastUpdateStatus != "Successful") || c.says != "" && (r.err == nil || !strings.Contains(r.err.Error(), c.says)) {
			t.Errorf("%s: %v", c.state, r.err)
		}
	}
}

// A new function needs a role.
func TestNoRole(t *testing.T) {
	f := deploytest.New(t)
	o := options(t)
	o.CreateRole = false
	if r := deployed(t.Context(), t, f, o); fault.ExitCode(r.err) != 64 ||
		!strings.Contains(r.err.Error(), "--create-role") || len(r.changing()) > 0 {
		t.Error(r.err)
	}
}

// Status prints the state, and has another exit code if the function does not exist.
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
	for file, same := range map[string]string{o.File: "same=true", executableOf(t, "amd64", "two"): "same=false",
		executableOf(t, "arm64", "one"): "EM_AARCH64", "/nowhere": "does not exist"} {
		r := status(file)
		for _, text := range []string{"state=Active", "siafu=true", "arch=amd64", "memory_mb=512", "timeout=60s", "concurrency=7",
			"subnets=[subnet-1]", "role made by siafu: " + deploytest.ARN(ours), f.Functions["f"].CodeSha256, same} {
			if r.err != nil || !strings.Contains(r.out, text) {
				t.Errorf("%v, it does not say %q:\n%s", r.err, text, r.out)
			}
		}
		if len(r.changing()) > 0 {
			t.Error(r.calls)
		}
	}
}

// Without permission to read tags, no function counts as siafu's.
func TestTagsUnseen(t *testing.T) {
	there := &lambda.GetFunctionOutput{
		TagsError: &types.TagsError{ErrorCode: aws.String("AccessDeniedException"), Message: aws.String("no")}}
	if err := client(deploytest.New(t), new(bytes.Buffer), false).owned(there, "f"); fault.ExitCode(err) != 78 ||
		!strings.Contains(err.Error(), "lambda:ListTags") {
		t.Error(err)
	}
}
