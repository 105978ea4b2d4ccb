package invoke

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	service "github.com/aws/aws-sdk-go-v2/service/lambda"

	"siafu/graph/fault"
	"siafu/lambda/local"
)

// Local is the SDK's client for a service of package local.
func Local(s *local.Service, atOnce int) *service.Client {
	return service.New(service.Options{
		BaseEndpoint: aws.String(s.URL()), Region: local.Region, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider(s.Key(), "unused", ""),
		HTTPClient:  connections(atOnce).WithTransportOptions(func(t *http.Transport) { t.Proxy = nil }),
	})
}

// patience is how long the search for credentials may take.
const patience = 20 * time.Second

// AWS is the SDK's client for AWS itself, with region and credentials of the SDK's
// chain: environment, shared files, the role of the machine. A fault of kind Config
// says which of the two is missing.
func AWS(ctx context.Context, atOnce int) (*service.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	missing := func(what string, remedy string) error {
		return fault.New(fault.Config, "lambda", "", "%s", what).Then("%s; --lambda local needs no account", remedy)
	}
	c, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(connections(atOnce)), config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }))
	switch {
	case err != nil:
		return nil, missing("the configuration of AWS: "+err.Error(), "correct the files in ~/.aws")
	case c.Region == "":
		return nil, missing("no region of AWS is set", "set AWS_REGION, or region in ~/.aws/config")
	}
	if _, err := c.Credentials.Retrieve(ctx); err != nil {
		return nil, missing("no credentials of AWS are found: "+err.Error(), `set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run "aws configure"`)
	}
	return service.NewFromConfig(c), nil
}

// connections keeps as many connections as there are invocations at a time.
func connections(atOnce int) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = atOnce, atOnce
	})
}
