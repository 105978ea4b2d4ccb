package invoke

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"siafu/internal/fault"
)

// accountTimeout bounds the time for loading the credentials.
const accountTimeout = 20 * time.Second

// LoadAccount returns the configuration of AWS clients in the user's account, with the given options.
// Region and credentials come from the environment, the shared files or the role of the machine. If
// one of them is missing, it returns a fault of kind Config, which names it.
func LoadAccount(ctx context.Context, options ...func(*config.LoadOptions) error) (aws.Config, error) {
	ctx, cancel := context.WithTimeout(ctx, accountTimeout)
	defer cancel()
	missing := func(what, remedy string) error {
		return fault.New(fault.Config, "lambda", "", "%s", what).Then("%s", remedy)
	}
	c, err := config.LoadDefaultConfig(ctx, options...)
	switch {
	case err != nil:
		return c, missing("cannot read the AWS configuration: "+err.Error(), "correct the files in ~/.aws")
	case c.Region == "":
		return c, missing("no AWS region is set", "set AWS_REGION, or region in ~/.aws/config")
	}
	if _, err := c.Credentials.Retrieve(ctx); err != nil {
		return c, missing("no AWS credentials were found: "+err.Error(),
			`set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run "aws configure"`)
	}
	return c, nil
}
