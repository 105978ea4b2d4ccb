// Package account finds the AWS account that a command works in: region and
// credentials of the SDK's chain. Its fault names what is missing.
package account

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"siafu/internal/fault"
)

// patience is how long the search for credentials may take.
const patience = 20 * time.Second

// Load returns the configuration of clients of AWS: region and credentials of the SDK's
// chain (environment, shared files, the role of the machine), and the options. A fault
// of kind Config says which of the two is missing.
func Load(ctx context.Context, options ...func(*config.LoadOptions) error) (aws.Config, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
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
		return c, missing("no AWS credentials were found: "+err.Error(), `set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run "aws configure"`)
	}
	return c, nil
}
