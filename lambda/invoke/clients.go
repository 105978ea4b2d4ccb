package invoke

import (
	"context"
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	service "github.com/aws/aws-sdk-go-v2/service/lambda"

	"siafu/internal/fault"
	"siafu/lambda/local"
)

// Local returns the SDK's client for a service of package local.
func Local(s *local.Service, atOnce int) *service.Client {
	return service.New(service.Options{
		BaseEndpoint: aws.String(s.URL()), Region: local.Region, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider(s.Key(), "unused", ""),
		HTTPClient:  connections(atOnce).WithTransportOptions(func(t *http.Transport) { t.Proxy = nil }),
	})
}

// AWS returns the SDK's client for AWS, in the account of LoadAccount. It returns a fault of kind
// Config if region or credentials are missing.
func AWS(ctx context.Context, atOnce int) (*service.Client, error) {
	c, err := LoadAccount(ctx, config.WithHTTPClient(connections(atOnce)),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }))
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		return nil, f.Then("%s; --lambda local needs no account", f.Remedy)
	}
	return service.NewFromConfig(c), err
}

// connections returns an HTTP client that keeps one connection per concurrent invocation.
func connections(atOnce int) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = atOnce, atOnce
	})
}
