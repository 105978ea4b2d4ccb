package deploy

import (
	"context"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// Remove deletes the function and the role that siafu has made for it, and nothing that
// does not carry its tag. What is not there is no error.
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
	c.say("the logs of its invocations are kept, if any exist; delete them with aws logs delete-log-group --region %s --log-group-name /aws/lambda/%s", c.region, name)
	return nil
}

// removeFunction deletes a function of siafu's, and reports whether it was there.
func (c *control) removeFunction(ctx context.Context, name string) (bool, error) {
	there, err := c.look(ctx, name)
	if err != nil {
		return false, err
	}
	if there == nil {
		c.say("function=%s region=%s does not exist", name, c.region)
		return false, nil
	}
	if err := c.owned(there, name); err != nil {
		return false, err
	}
	_, err = change(ctx, c, "lambda:DeleteFunction", &lambda.DeleteFunctionInput{FunctionName: &name}, c.lambda.DeleteFunction)
	return err == nil, err
}
