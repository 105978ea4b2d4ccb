package deploy

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"siafu/internal/fault"
	siafulambda "siafu/lambda"
)

// Status prints the state of a function. It returns a fault of kind Missing if the function does
// not exist.
func Status(ctx context.Context, o StatusOptions, w io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	c, err := open(ctx, w, false)
	if err != nil {
		return err
	}
	return c.status(ctx, o)
}

func (c *control) status(ctx context.Context, o StatusOptions) error {
	found, err := c.getFunction(ctx, o.Name)
	if err != nil {
		return err
	}
	if found != nil {
		c.printFunction(found, o)
	}
	if err := c.printRole(ctx, o.Name); err != nil {
		return err
	}
	if found == nil {
		return fault.New(fault.Missing, "lambda", "", "there is no function %s in %s", o.Name, c.region).
			Then(`create it with "siafu lambda deploy", or set AWS_REGION to another region`)
	}
	return nil
}

func (c *control) printFunction(found *lambda.GetFunctionOutput, o StatusOptions) {
	f := found.Configuration
	arch := "amd64"
	if slices.Contains(f.Architectures, types.ArchitectureArm64) {
		arch = "arm64"
	}
	concurrency := "not reserved"
	if r := reserved(found); r != nil {
		concurrency = fmt.Sprint(*r)
	}
	c.say("function=%s region=%s siafu=%t state=%s last_update=%s arch=%s memory_mb=%d timeout=%ds modified=%s", o.Name, c.region,
		c.owned(found, o.Name) == nil, f.State, f.LastUpdateStatus, arch, aws.ToInt32(f.MemorySize),
		aws.ToInt32(f.Timeout), aws.ToString(f.LastModified))
	for _, reason := range []*string{f.StateReason, f.LastUpdateStatusReason} {
		if text := aws.ToString(reason); text != "" {
			c.say("reason: %s", text)
		}
	}
	c.say("role=%s", aws.ToString(f.Role))
	c.say("concurrency=%s", concurrency)
	if f.VpcConfig != nil && len(f.VpcConfig.SubnetIds) > 0 {
		c.say("vpc=%s subnets=%v security_groups=%v", aws.ToString(f.VpcConfig.VpcId), f.VpcConfig.SubnetIds, f.VpcConfig.SecurityGroupIds)
	}
	c.say("code_sha256=%s code_bytes=%d %s", aws.ToString(f.CodeSha256), f.CodeSize, compareCode(o.File, arch, aws.ToString(f.CodeSha256)))
}

func compareCode(file, arch, sum string) string {
	path, err := siafulambda.Executable(file, arch)
	if err != nil {
		return "local: " + err.Error()
	}
	local, err := Pack(path, arch)
	if err != nil {
		return "local: " + err.Error()
	}
	return fmt.Sprintf("local=%s same=%t", path, local.SHA256 == sum)
}

func (c *control) printRole(ctx context.Context, function string) error {
	r, err := c.createdFor(ctx, function)
	switch {
	case denied(err):
		c.say("role made by siafu: unknown: %v", err)
		return nil
	case err != nil:
		return err
	case r != nil:
		c.say("role made by siafu: %s", aws.ToString(r.Arn))
	}
	return nil
}
