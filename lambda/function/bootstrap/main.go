// Bootstrap is the program of the function. The runtime provided.al2023 starts it by this name. It
// ends when the Runtime API ends.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"siafu/lambda/function"
)

func main() { lambda.Start(function.New().Handle) }
