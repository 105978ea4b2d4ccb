package deploy

import (
	"context"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// Remove deletes the function, and the role that siafu created for it. It deletes only resources
// with siafu's tag. A missing function is no error.
func Remove(ctx context.Context, o RemoveOptions, w io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	c, err := open(ctx, w, o.DryRun)
	if err != nil {
		return err
	}
	return c.remove(ctx, o.Name)
}

func (c *control) remove(ctx context.Context, name string) error {
	deleted, err := c.removeFunction(ctx, name)
	if err != nil {
		return err
	}
	if err := c.dropRole(ctx, name, deleted); err != nil {
		return err
	}
	if c.dry {
		c.say("dry run: only read calls were made, %d changing calls were skipped, and nothing was changed", c.changes)
		return nil
	}
	c.say("function=%s region=%s changes=%d: removed", name, c.region, c.changes)
	c.say("the logs of its invocations are kept, if any exist; delete them with aws logs delete-log-group --region %s --log-group-name "+
		"/aws/lambda/%s", c.region, name)
	return nil
}

// removeFunction deletes a function that siafu created, and reports whether it deleted one.
func (c *control) removeFunction(ctx context.Context, name string) (bool, error) {
	found, err := c.getFunction(ctx, name)
	if err != nil {
		return false, err
	}
	if found == nil {
		c.say("function=%s region=%s does not exist", name, c.region)
		return false, nil
	}
	if err := c.owned(found, name); err != nil {
		return false, err
	}
	_, err = change(ctx, c, "lambda:DeleteFunction", &lambda.DeleteFunctionInput{FunctionName: &name}, c.lambda.DeleteFunction)
	return err == nil, err
}
