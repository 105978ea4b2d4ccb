// Bootstrap is the program of the function, by the name that the runtime
// provided.al2023 starts. It ends when the Runtime API does.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"siafu/lambda/function"
)

func main() { lambda.Start(function.New().Handle) }
