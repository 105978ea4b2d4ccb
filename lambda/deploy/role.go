package deploy

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"siafu/internal/fault"
)

// trust is the policy that lets only the Lambda service assume the role.
const trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole"}]}`

// policies returns the managed policies of a function's role: to write logs and, in a VPC, to
// create network interfaces.
func policies(region string, vpc bool) []string {
	list := []string{policy(region, "AWSLambdaBasicExecutionRole")}
	if vpc {
		list = append(list, vpcPolicy(region))
	}
	return list
}

func vpcPolicy(region string) string { return policy(region, "AWSLambdaVPCAccessExecutionRole") }

func policy(region, name string) string {
	return "arn:" + partition(region) + ":iam::aws:policy/service-role/" + name
}

// lookRole returns a role, or nil if it does not exist.
func (c *control) lookRole(ctx context.Context, name string) (*types.Role, error) {
	out, err := read(ctx, "iam:GetRole", &iam.GetRoleInput{RoleName: &name}, c.iam.GetRole)
	switch {
	case code(err) == "NoSuchEntity":
		return nil, nil
	case err != nil:
		return nil, err
	}
	return out.Role, nil
}

// ownRole reports whether siafu created the role for this function, by its tag.
func ownRole(r *types.Role, function string) bool {
	return slices.ContainsFunc(r.Tags, func(t types.Tag) bool {
		return aws.ToString(t.Key) == tag && aws.ToString(t.Value) == function
	})
}

// attached returns the ARNs of the policies that are attached to a role.
func (c *control) attached(ctx context.Context, role string) ([]string, error) {
	out, err := read(ctx, "iam:ListAttachedRolePolicies", &iam.ListAttachedRolePoliciesInput{RoleName: &role},
		c.iam.ListAttachedRolePolicies)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, p := range out.AttachedPolicies {
		list = append(list, aws.ToString(p.PolicyArn))
	}
	return list, nil
}

// role creates siafu's role for the function if it does not exist, attaches missing policies and
// returns the ARN. Policies that are no longer needed stay attached until the role is removed,
// because AWS uses them to delete the network interfaces.
func (d *deployment) role(ctx context.Context) (string, error) {
	name, err := roleName(d.region, d.o.Name)
	if err != nil {
		return "", err
	}
	found, err := d.lookRole(ctx, name)
	if err != nil {
		return "", err
	}
	var has []string
	switch {
	case found == nil:
		found, err = d.createRole(ctx, name)
	case !ownRole(found, d.o.Name):
		err = fault.New(fault.Config, "lambda", "", "siafu did not create the role %s: it lacks the tag %s=%s", name, tag, d.o.Name).
			Then("pass an existing role with --role, or choose another --name")
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
		if _, err := change(ctx, d.control, "iam:AttachRolePolicy", &iam.AttachRolePolicyInput{RoleName: &name, PolicyArn: &p},
			d.iam.AttachRolePolicy); err != nil {
			return "", err
		}
		d.freshRole = true
	}
	return aws.ToString(found.Arn), nil
}

// createRole creates the role. In a dry run its ARN has ACCOUNT in place of the account number.
func (d *deployment) createRole(ctx context.Context, name string) (*types.Role, error) {
	out, err := change(ctx, d.control, "iam:CreateRole", &iam.CreateRoleInput{
		RoleName: &name, AssumeRolePolicyDocument: aws.String(trust), Description: aws.String("siafu's function " + d.o.Name),
		Tags: []types.Tag{{Key: aws.String(tag), Value: &d.o.Name}},
	}, d.iam.CreateRole)
	d.createdRole = err == nil || uncertain(err)
	if err != nil {
		return nil, err
	}
	if d.dry {
		return &types.Role{Arn: aws.String("arn:" + partition(d.region) + ":iam::ACCOUNT:role/" + name)}, nil
	}
	return out.Role, nil
}

// createdFor returns the role that siafu created for a function, or nil.
func (c *control) createdFor(ctx context.Context, function string) (*types.Role, error) {
	name, err := roleName(c.region, function)
	if err != nil {
		return nil, nil // deploy rejects such a name
	}
	found, err := c.lookRole(ctx, name)
	if err != nil || found == nil || ownRole(found, function) {
		return found, err
	}
	c.say("role=%s lacks siafu's tag", name)
	return nil, nil
}

// dropRole deletes the role that siafu created for a function, if it exists. Without permission to
// read the role, dropRole keeps it: these credentials cannot have created it.
//
// After a VPC function is deleted, AWS removes its network interfaces within about 20 minutes,
// using the function's role. Without the role the interfaces and the security group would remain.
// Therefore a role with the VPC policy is not deleted in the same run as the function.
func (c *control) dropRole(ctx context.Context, function string, deleted bool) error {
	r, err := c.createdFor(ctx, function)
	switch {
	case denied(err):
		c.say("the role of the function is kept: %v", err)
		return nil
	case err != nil || r == nil:
		return err
	}
	list, err := c.attached(ctx, *r.RoleName)
	if err != nil {
		return err
	}
	if deleted && slices.Contains(list, vpcPolicy(c.region)) {
		return fault.New(fault.Stopped, "lambda", "",
			"the role %s is kept for now: AWS needs it to remove the function's VPC network interfaces, within 20 minutes", *r.RoleName).
			Then("run siafu lambda remove --name %s again after that", function)
	}
	for _, p := range list {
		if _, err := change(ctx, c, "iam:DetachRolePolicy", &iam.DetachRolePolicyInput{RoleName: r.RoleName, PolicyArn: &p},
			c.iam.DetachRolePolicy); err != nil {
			return err
		}
	}
	_, err = change(ctx, c, "iam:DeleteRole", &iam.DeleteRoleInput{RoleName: r.RoleName}, c.iam.DeleteRole)
	return err
}
