package deploy

import (
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/testkit/deploytest"
)

// Remove deletes siafu's resources once, and names the remaining logs.
func TestRemove(t *testing.T) {
	f := deploytest.New(t)
	if r := deployed(t.Context(), t, f, options(t)); r.err != nil {
		t.Fatal(r.err)
	}
	r := removed(t, f, false)
	expect(t, r, "lambda:GetFunction", "lambda:DeleteFunction", "iam:GetRole", "iam:ListAttachedRolePolicies",
		"iam:DetachRolePolicy", "iam:DeleteRole")
	if len(f.Functions)+len(f.Roles) > 0 || !strings.Contains(r.out, "--log-group-name /aws/lambda/f") {
		t.Error(r.out)
	}
	expect(t, removed(t, f, false), "lambda:GetFunction", "iam:GetRole")
}

// The role of a function in a VPC is deleted by the next remove.
func TestRemoveFromVPC(t *testing.T) {
	f := deploytest.New(t)
	o := options(t)
	o.Subnets, o.SecurityGroups = []string{"subnet-1"}, []string{"sg-1"}
	if r := deployed(t.Context(), t, f, o); r.err != nil {
		t.Fatal(r.err)
	}
	if r := removed(t, f, false); fault.ExitCode(r.err) != 75 || !strings.Contains(r.err.Error(), "20 minutes") ||
		f.Roles[ours] == nil || len(f.Functions) > 0 {
		t.Errorf("%v", r.err)
	}
	if r := removed(t, f, false); r.err != nil || len(f.Roles) > 0 {
		t.Errorf("%v", r.err)
	}
}

// Siafu neither changes nor deletes resources that it did not create.
func TestStrangers(t *testing.T) {
	f := deploytest.New(t)
	f.Functions["f"] = &deploytest.Function{Config: deploytest.Config{FunctionName: "f", State: "Active", LastUpdateStatus: "Successful"},
		Tags: map[string]string{"siafu": "g"}}
	f.Roles[ours] = &deploytest.Role{Tags: map[string]string{"owner": "me"}}
	for name, r := range map[string]result{"deploy": deployed(t.Context(), t, f, options(t)), "remove": removed(t, f, false)} {
		if fault.ExitCode(r.err) != 78 || !strings.Contains(r.err.Error(), "it lacks the tag siafu=f") || len(r.changing()) > 0 {
			t.Errorf("%s: %v %v", name, r.err, r.calls)
		}
	}
	delete(f.Functions, "f")
	if r := deployed(t.Context(), t, f, options(t)); fault.ExitCode(r.err) != 78 ||
		!strings.Contains(r.err.Error(), "the role "+ours) || len(r.changing()) > 0 {
		t.Errorf("the role: %v %v", r.err, r.calls)
	}
	if r := removed(t, f, false); r.err != nil || f.Roles[ours] == nil || !strings.Contains(r.out, "lacks siafu's tag") {
		t.Errorf("the role: %v\n%s", r.err, r.out)
	}
}

// Remove works without IAM permissions if the function has another role.
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
