package deploy

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"siafu/internal/fault"
)

// trust lets Lambda alone take a role on.
const trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole"}]}`

// policies are what the role of a function may do: write logs, and in a VPC make the
// network interfaces that it reaches others by.
func policies(region string, vpc bool) []string {
	list := []string{policy(region, "AWSLambdaBasicExecutionRole")}
	if vpc {
		list = append(list, vpcPolicy(region))
	}
	return list
}

func vpcPolicy(region string) string { return policy(region, "AWSLambdaVPCAccessExecutionRole") }

// policy returns the ARN of one of AWS's own.
func policy(region, name string) string {
	return "arn:" + partition(region) + ":iam::aws:policy/service-role/" + name
}

// lookRole is what there is of a role, nil where there is none.
func (c *control) lookRole(ctx context.Context, name string) (*types.Role, error) {
	there, err := read(ctx, "iam:GetRole", &iam.GetRoleInput{RoleName: &name}, c.iam.GetRole)
	switch {
	case code(err) == "NoSuchEntity":
		return nil, nil
	case err != nil:
		return nil, err
	}
	return there.Role, nil
}

// ownRole reports whether siafu has made a role, for a function.
func ownRole(r *types.Role, function string) bool {
	return slices.ContainsFunc(r.Tags, func(t types.Tag) bool {
		return aws.ToString(t.Key) == tag && aws.ToString(t.Value) == function
	})
}

// attached returns the ARNs of the policies of a role.
func (c *control) attached(ctx context.Context, role string) ([]string, error) {
	there, err := read(ctx, "iam:ListAttachedRolePolicies", &iam.ListAttachedRolePoliciesInput{RoleName: &role}, c.iam.ListAttachedRolePolicies)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, p := range there.AttachedPolicies {
		list = append(list, aws.ToString(p.PolicyArn))
	}
	return list, nil
}

// role makes siafu's role for the function, unless it is there, with the policies that
// it needs, and returns its ARN. Policies that it no longer needs stay until it is
// removed: network interfaces are taken down by them.
func (d *deployment) role(ctx context.Context) (string, error) {
	name, err := roleName(d.region, d.o.Name)
	if err != nil {
		return "", err
	}
	there, err := d.lookRole(ctx, name)
	if err != nil {
		return "", err
	}
	var has []string
	switch {
	case there == nil:
		there, err = d.makeRole(ctx, name)
	case !ownRole(there, d.o.Name):
		err = fault.New(fault.Config, "lambda", "", "siafu did not create the role %s: it lacks the tag %s=%s", name, tag, d.o.Name).Then("give the --role, or choose another --name")
	default:
		has, err = d.attached(ctx, name)
	}
	if err != nil {
		return "", err
	}
	for _, p := range policies(d.region, d.vpc()) {
		if slices.Contains(has, p) {
			continue
		}
		if _, err := change(ctx, d.control, "iam:AttachRolePolicy", &iam.AttachRolePolicyInput{RoleName: &name, PolicyArn: &p}, d.iam.AttachRolePolicy); err != nil {
			return "", err
		}
		d.freshRole = true
	}
	return aws.ToString(there.Arn), nil
}

// makeRole makes the role. In a dry run its ARN has a blank for the account's number.
func (d *deployment) makeRole(ctx context.Context, name string) (*types.Role, error) {
	out, err := change(ctx, d.control, "iam:CreateRole", &iam.CreateRoleInput{
		RoleName: &name, AssumeRolePolicyDocument: aws.String(trust), Description: aws.String("siafu's function " + d.o.Name),
		Tags: []types.Tag{{Key: aws.String(tag), Value: &d.o.Name}},
	}, d.iam.CreateRole)
	d.madeRole = err == nil || uncertain(err)
	if err != nil {
		return nil, err
	}
	if d.dry {
		return &types.Role{Arn: aws.String("arn:" + partition(d.region) + ":iam::ACCOUNT:role/" + name)}, nil
	}
	return out.Role, nil
}

// madeFor returns the role that siafu has made for a function, nil where there is none.
func (c *control) madeFor(ctx context.Context, function string) (*types.Role, error) {
	name, err := roleName(c.region, function)
	if err != nil {
		return nil, nil // deploy refuses such a name
	}
	there, err := c.lookRole(ctx, name)
	if err != nil || there == nil || ownRole(there, function) {
		return there, err
	}
	c.say("role=%s lacks siafu's tag", name)
	return nil, nil
}

// dropRole deletes the role that siafu has made for a function, if there is one. A role
// that cannot be looked for is none that siafu has made with these rights.
//
// The network interfaces of a function in a VPC go within some twenty minutes of its end,
// by the rights of its role; without it they would stay for ever, and with them the
// security group. A role with these rights is therefore not deleted together with the
// function.
func (c *control) dropRole(ctx context.Context, function string, deleted bool) error {
	r, err := c.madeFor(ctx, function)
	switch {
	case denied(err):
		c.say("keeps the role of the function: %v", err)
		return nil
	case err != nil || r == nil:
		return err
	}
	list, err := c.attached(ctx, *r.RoleName)
	if err != nil {
		return err
	}
	if deleted && slices.Contains(list, vpcPolicy(c.region)) {
		return fault.New(fault.Stopped, "lambda", "", "the role %s is kept for now: AWS needs it to remove the function's VPC network interfaces, within 20 minutes", *r.RoleName).
			Then("run siafu lambda remove --name %s again after that", function)
	}
	for _, p := range list {
		if _, err := change(ctx, c, "iam:DetachRolePolicy", &iam.DetachRolePolicyInput{RoleName: r.RoleName, PolicyArn: &p}, c.iam.DetachRolePolicy); err != nil {
			return err
		}
	}
	_, err = change(ctx, c, "iam:DeleteRole", &iam.DeleteRoleInput{RoleName: r.RoleName}, c.iam.DeleteRole)
	return err
}
