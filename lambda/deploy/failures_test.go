package deploy

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/google/go-cmp/cmp"

	"siafu/internal/fault"
	"siafu/internal/testkit/deploytest"
)

// A failed deployment removes the resources that it created, unless Keep is set.
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
	quota := &deploytest.Refusal{Status: http.StatusBadRequest, Code: "InvalidParameterValueException", Message: "Specified " +
		"ReservedConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below its minimum value of [10]."}
	undoRole := []string{"iam:DetachRolePolicy", "iam:DeleteRole"}
	for _, c := range []struct {
		name  string
		fails func(*deploytest.Fake)
		says  string
		undo  []string
	}{
		{"the function is not made", fails("lambda:CreateFunction", deploytest.Denied("iam:PassRole")), "allow iam:PassRole", undoRole},
		{"a policy is not attached", fails("iam:AttachRolePolicy", deploytest.Denied("iam:AttachRolePolicy")),
			"allow iam:AttachRolePolicy", []string{"iam:DeleteRole"}},
		{"the role is not made", fails("iam:CreateRole", deploytest.Denied("iam:CreateRole")), "allow iam:CreateRole", nil},
		{"the service fails", fails("lambda:CreateFunction", deploytest.Broken()), "run it again later", undoRole},
		{"the function fails", func(f *deploytest.Fake) { f.Fail = "no addresses are left" }, "no addresses are left",
			append([]string{"lambda:DeleteFunction"}, undoRole...)},
		{"the quota is used up", fails("lambda:PutFunctionConcurrency", quota), "a higher quota",
			append([]string{"lambda:DeleteFunction"}, undoRole...)},
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
			if said := strings.Contains(r.out, "removes the created resources"); said != (len(c.undo) > 0) {
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

// A function that is not ready in time is removed. In a VPC its role is kept, because its
// permissions are needed to remove network interfaces, and a message says so. A later remove
// deletes the role.
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
	if r.err == nil || !strings.Contains(r.err.Error(), "state Pending") || len(f.Functions) > 0 || f.Roles[ours] == nil ||
		!strings.Contains(r.out, "within 20 minutes") {
		t.Fatalf("%v\n%s", r.err, r.out)
	}
	expect(t, removed(t, f, false), "lambda:GetFunction", "iam:GetRole", "iam:ListAttachedRolePolicies", "iam:DetachRolePolicy",
		"iam:DetachRolePolicy", "iam:DeleteRole")
}

// A failed deployment that changed an existing function reverts nothing, not even a new role.
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
	if r.err == nil || f.Roles[ours] == nil || f.Functions["f"].Role != deploytest.ARN(ours) ||
		!strings.Contains(r.out, "deploy again to finish") {
		t.Errorf("%v\n%s", r.err, r.out)
	}
	o.CreateRole = false
	if r := deployed(t.Context(), t, f, o); r.err == nil || strings.Contains(r.out, "changing existing resources") {
		t.Errorf("nothing was changed: %v\n%s", r.err, r.out)
	}
	f.Refuse = nil
	if r := deployed(t.Context(), t, f, o); r.err != nil || !cmp.Equal(r.changing(), []string{"lambda:UpdateFunctionCode"}) {
		t.Errorf("%v %v", r.err, r.changing())
	}
}

// An interrupt ends a deployment, which still removes the resources that it created.
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
				t.Errorf("exit %d, %v; %d functions and %d roles are left\n%s", fault.ExitCode(r.err), r.err,
					len(f.Functions), len(f.Roles), r.out)
			}
		})
	}
}

// The SDK repeats a call whose response is lost, and the created resource is found.
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

// The SDK repeats throttled calls, up to a limit.
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

// Errors of AWS are reported with a remedy.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		status        int
		code, message string
		exit          int
		says          string
	}{
		{403, "AccessDeniedException", "no", 78, "allow lambda:GetFunction"},
		{403, "AccessDeniedException", "User: u is not authorized to perform: lambda:ListTags on resource: r", 78, "allow lambda:ListTags"},
		{403, "UnrecognizedClientException", "The security token included in the request is invalid.", 78, "renew the credentials"},
		{403, "ExpiredTokenException", "expired", 78, "renew the credentials"},
		{400, "CodeStorageExceededException", "full", 78, "a higher quota"},
		{400, "InvalidParameterValueException",
			"'MemorySize' value failed to satisfy constraint: Member must have value less than or equal to 3008", 78, "at most 3008 MB"},
		{400, "InvalidParameterValueException", "The subnet ID 'subnet-1' does not exist", 78, "correct the flag"},
		{409, "ResourceConflictException", "The operation cannot be performed at this time.", 1, "run it again"},
		{500, "ServiceException", "oh", 1, "AWS failed"},
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
